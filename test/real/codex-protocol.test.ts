/**
 * The protocol that the installed Codex writes of itself, against what the adapter says and reads: what has changed is named by
 * its method. What the adapter says is written down while it passes the suite of adapters on the program itself.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { Json, JsonObject } from "../../src/protocol/json.ts";
import type { NativeAnswer } from "../../src/protocol/native-events.ts";
import type { NativeAdapter } from "../../src/providers/port.ts";
import { createCodexProvider } from "../../src/providers/codex/codex-provider.ts";
import { CodexTurnUnderWay } from "../../src/providers/codex/turn.ts";
import { ANSWERS, type CodexRequest, NOTIFICATIONS, REQUESTS } from "../../src/providers/codex/wire.ts";
import {
  type NativeBehaviour,
  nativeProviderConformance,
} from "../../src/testing/provider-conformance-native.ts";
import { startModelServer } from "../support/model-server/model-server.ts";
import { codexHome } from "./support/codex.ts";
import { type Described, misfits, unwritten } from "./support/json-schema.ts";
import { findReal } from "./support/programs.ts";

const codex = findReal("codex");
const TEE = fileURLToPath(new URL("support/tee.mjs", import.meta.url));

const RESPONSES = {
  "item/tool/call": "DynamicToolCallResponse",
  "item/commandExecution/requestApproval": "CommandExecutionRequestApprovalResponse",
  "item/fileChange/requestApproval": "FileChangeRequestApprovalResponse",
  "item/tool/requestUserInput": "ToolRequestUserInputResponse",
} as const satisfies Record<keyof typeof REQUESTS, string>;

/** What Codex writes of its protocol. */
class Written {
  readonly #folder: string;

  constructor(folder: string) {
    if ("missing" in codex) throw new Error(codex.missing);
    this.#folder = folder;
    const asked = ["app-server", "generate-json-schema", "--experimental", "--out", this.#folder];
    execFileSync(codex.command, [...codex.args, ...asked], {
      env: { HOME: folder, PATH: "/usr/bin:/bin" },
      stdio: "pipe",
    });
  }

  file(name: string): Described {
    const root = JSON.parse(readFileSync(join(this.#folder, `${name}.json`), "utf8")) as JsonObject;
    return { schema: root, root };
  }

  /** What goes with a message of this method. */
  params(file: "ClientRequest" | "ServerRequest" | "ServerNotification", method: string): Described {
    const { root } = this.file(file);
    const found = (root["oneOf"] as readonly JsonObject[]).find((one) => methodOf(one) === method);
    if (found === undefined) throw new Error(`Codex has no ${method} any more (${file})`);
    return { schema: (found["properties"] as JsonObject)["params"]!, root };
  }

  answer(method: string): Described {
    const name = method.split(/[/_]/).map((word) => word[0]!.toUpperCase() + word.slice(1));
    const file = `${name.join("")}Response`;
    return this.file(method === "initialize" ? `v1/${file}` : `v2/${file}`);
  }
}

function methodOf(one: JsonObject): Json | undefined {
  const { method } = one["properties"] as { readonly method?: { readonly enum?: readonly string[] } };
  return method?.enum?.[0];
}

/** What a schema of ours takes, as it stands on the wire. */
function read(schema: z.ZodType): Described {
  const root = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as JsonObject;
  return { schema: root, root };
}

describe.skipIf("missing" in codex)("the protocol of Codex", () => {
  let written: Written;
  const folder = mkdtempSync(join(tmpdir(), "coppice-real-"));
  beforeAll(() => {
    written = new Written(folder);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));

  test.each(Object.keys(ANSWERS))("what is read of the answer to %s is written", (method) => {
    const ours = read(ANSWERS[method as keyof typeof ANSWERS]);
    expect(unwritten(ours, written.answer(method), method)).toEqual([]);
  });

  test.each(Object.keys(NOTIFICATIONS))("what is read of %s is written", (method) => {
    const ours = read(NOTIFICATIONS[method as keyof typeof NOTIFICATIONS]);
    expect(unwritten(ours, written.params("ServerNotification", method), method)).toEqual([]);
  });

  test.each(Object.keys(REQUESTS))("what is read of its request %s is written", (method) => {
    const ours = read(REQUESTS[method as keyof typeof REQUESTS]);
    expect(unwritten(ours, written.params("ServerRequest", method), method)).toEqual([]);
  });

  const of = { threadId: "t", turnId: "u" };
  const ANSWERED: readonly [CodexRequest, NativeAnswer][] = [
    [
      { method: "item/tool/call", ...of, callId: "c", tool: "look", arguments: {} },
      { kind: "tool", output: "seen", isError: false },
    ],
    [
      { method: "item/commandExecution/requestApproval", ...of, itemId: "i", command: "ls" },
      { kind: "decision", decision: { verdict: "approved", note: null } },
    ],
    [
      { method: "item/fileChange/requestApproval", ...of, itemId: "i" },
      { kind: "decision", decision: { verdict: "denied", note: null } },
    ],
    [
      {
        method: "item/tool/requestUserInput",
        ...of,
        itemId: "i",
        questions: [{ id: "q", question: "which?" }],
      },
      { kind: "answer", text: "this one" },
    ],
    [{ method: "item/commandExecution/requestApproval", ...of, itemId: "i" }, { kind: "cancelled" }],
  ];
  test.each(ANSWERED)("it takes the answer to its request $method", async (request, answer) => {
    const asked: string[] = [];
    const none = { listen: () => undefined, leave: () => undefined, ask: () => expect.unreachable() };
    const turn = new CodexTurnUnderWay("key", none, (event) => {
      if (event.type === "request") asked.push(event.request.ref.nativeId);
    });
    const answering = turn.asked(request);
    expect(turn.answer(asked[0]!, answer)).toBe(true);
    expect(misfits(written.file(RESPONSES[request.method]), await answering, request.method)).toEqual([]);
  });

  const SCRIPTS: Readonly<Record<NativeBehaviour, string>> = {
    text: "@@TEXT one@@",
    empty: "@@EMPTY@@",
    calls: '@@CALL coppice.look {"at":"a"}@@ @@TEXT seen@@',
    question: "@@TEXT one@@",
    silence: "@@TEXT one@@ @@HOLD@@",
    refusal: "@@ERROR 400@@",
    failure: "@@ERROR 500@@",
  };

  test("all that the adapter says is known to it, by every method that there is in the adapter", async () => {
    const records: string[] = [];
    const checks = nativeProviderConformance(async (behaviour) => {
      if ("missing" in codex) throw new Error(codex.missing);
      const server = await startModelServer({ unscripted: SCRIPTS[behaviour] });
      const home = codexHome(server);
      const record = join(home.path, "record");
      records.push(record);
      const args = [TEE, record, codex.command, ...codex.args];
      const open = () =>
        withNotes(createCodexProvider({ command: process.execPath, args, env: home.env, isolated: true }));
      return {
        adapter: open(),
        reopen: open,
        kill: () => home.kill(),
        [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
      };
    });
    const wanted = /forks as finely|rolls back|puts input|asks for its tools|reads back|breaks? when it dies/;
    for (const { title, run } of checks) if (wanted.test(title)) await run();
    const said = records.flatMap((record) => linesOf(record));
    const seen = new Set<string>();
    for (const { method, params } of said) {
      if (method === undefined || method === "initialized") continue;
      seen.add(method);
      expect(misfits(written.params("ClientRequest", method), params ?? null, method)).toEqual([]);
    }
    expect([...seen].toSorted()).toEqual(Object.keys(ANSWERS).toSorted());
  });
});

/** Its turns carry what a developer says. */
function withNotes(adapter: NativeAdapter): NativeAdapter {
  const open = adapter.openSession.bind(adapter);
  adapter.openSession = async (input) => {
    const session = await open(input);
    const start = session.startTurn.bind(session);
    const preambles = [{ kind: "note", channel: "developer", text: "Be brief." }] as const;
    session.startTurn = (turn) => start({ ...turn, preambles });
    return session;
  };
  return adapter;
}

interface Said {
  readonly method?: string;
  readonly params?: Json;
}

function linesOf(record: string): readonly Said[] {
  const lines = readFileSync(record, "utf8").split("\n");
  return lines.flatMap((line) => (line.startsWith(">{") ? [JSON.parse(line.slice(1)) as Said] : []));
}
