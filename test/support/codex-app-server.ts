/** The app-server of Codex in this process: it tells and answers what a test says, and keeps what it was asked. */
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { onTestFinished } from "vitest";
import type { ProcessEnd, StartProcess } from "../../src/platform/process.ts";
import { EFFECTS } from "../../src/protocol/agent.ts";
import type { Json, JsonObject } from "../../src/protocol/json.ts";
import { createCodexProvider } from "../../src/providers/codex/codex-provider.ts";
import type { NativeSession } from "../../src/providers/port.ts";
import { type VirtualClock, virtualClock } from "../../src/testing/virtual-clock.ts";
import { Arrivals } from "./model-wire/loopback.ts";

interface Asked {
  readonly method: string;
  readonly params: JsonObject;
  answer(result: Json): void;
}

/** What every server answers by itself. */
const ANSWERS: Readonly<Record<string, Json>> = {
  initialize: { userAgent: "codex" },
  "thread/start": { thread: { id: "thread" } },
  "thread/unsubscribe": {},
};

/** Above all that a system gives out: nobody is signalled by it. */
const NOBODY = 2 ** 31 - 1;

export interface CodexAppServer {
  readonly clock: VirtualClock;
  /** Names of what it was asked since its start, in their order. */
  methods(): readonly string[];
  /** The next request for this. */
  next(method: string): Promise<Asked>;
  tell(method: string, params: JsonObject): void;
  /** A session on it, with a conversation. */
  session(): Promise<NativeSession>;
}

export function codexAppServer(): CodexAppServer {
  const clock = virtualClock();
  const arrivals = new Arrivals<Asked>();
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const exited = Promise.withResolvers<ProcessEnd>();
  const say = (message: object): void => void stdout.write(`${JSON.stringify(message)}\n`);
  createInterface({ input: stdin })
    .on("line", (line) => {
      const { id, method, params } = JSON.parse(line) as Asked & { id?: number };
      if (id === undefined) return;
      const answer = (result: Json): void => say({ id, result });
      arrivals.add({ method, params, answer });
      if (method in ANSWERS) answer(ANSWERS[method]!);
    })
    .on("close", () => {
      stdout.end();
      stderr.end();
      exited.resolve({ code: 0, signal: null });
    });
  const startProcess: StartProcess = async () => ({
    pid: NOBODY,
    startedAt: "",
    stdin,
    stdout,
    stderr,
    exited: exited.promise,
  });
  return {
    clock,
    methods: () => arrivals.all.map(({ method }) => method).filter((method) => method !== "initialize"),
    next: (method) => arrivals.next((asked) => asked.method === method),
    tell: (method, params) => say({ method, params }),
    async session() {
      const provider = createCodexProvider({ command: process.execPath, clock });
      const session = await provider.openSession({
        treeId: "tree",
        threadId: "thread",
        path: "/root",
        model: null,
        workspace: null,
        instructions: null,
        effects: EFFECTS,
        tools: [],
        transportWaitMs: 45_000,
        startProcess,
      });
      onTestFinished(() => void stdin.end());
      await session.ensureThread({ model: null, effort: null });
      return session;
    },
  };
}
