/** Programs that are not Codex, or not one that its adapter knows: typed, within a deadline, and the tree stays usable. */
import { onTestFinished, test, expect } from "vitest";
import { createCodexProvider } from "../../src/providers/codex/codex-provider.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { repeat, say } from "../../src/providers/scripted/script.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { createMemoryStore } from "../../src/store/memory.ts";
import { virtualClock } from "../../src/testing/virtual-clock.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";

/** Answers each request with what `answers` says of its method; one that it does not know with what a server says then. */
const server = (answers: Readonly<Record<string, unknown>>): string => `
  const answers = ${JSON.stringify(answers)};
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, method } = JSON.parse(line);
    if (id === undefined) return;
    const answer = method in answers ? { result: answers[method] } : { error: { code: -32601, message: "unknown method" } };
    console.log(JSON.stringify({ id, ...answer }));
  });`;

interface Case {
  readonly program: string;
  readonly reason: string;
  readonly told: RegExp;
}

const CASES: Readonly<Record<string, Case>> = {
  "does not know a method": {
    program: server({}),
    reason: "version_unsupported",
    told: /Codex refused initialize: unknown method/u,
  },
  "answers in another form": {
    program: server({ initialize: { agent: "codex/9" } }),
    reason: "version_unsupported",
    told: /initialize in another form .*: userAgent/u,
  },
  "prints what is no message": {
    program: `console.log("Welcome!"); setInterval(() => {}, 1000)`,
    reason: "provider_unavailable",
    told: /Welcome!/u,
  },
  "prints half a line and ends": {
    program: `process.stdout.write('{"id":1,"res')`,
    reason: "provider_unavailable",
    told: /./u,
  },
  "prints a line of 40 MB": {
    program: `process.stdout.write("x".repeat(40e6)); setInterval(() => {}, 1000)`,
    reason: "provider_unavailable",
    told: /line/u,
  },
  "ends at once": {
    program: `console.error("not signed in"); process.exit(3)`,
    reason: "provider_unavailable",
    told: /not signed in/u,
  },
  "never answers": {
    program: `setInterval(() => {}, 1000)`,
    reason: "provider_unavailable",
    told: /initialize|does not open a session|has not answered `openSession`/u,
  },
};

const DEADLINE_MS = 60_000;

async function opened(command: string, args: readonly string[]) {
  const clock = virtualClock();
  const runtime = await createRuntime({
    clock,
    store: createMemoryStore(),
    providers: {
      codex: createCodexProvider({ command, args, isolated: true, deadlineMs: DEADLINE_MS, clock }),
      scripted: scripted({ "*": [repeat(say("still here"))] }),
    },
    limits: { closeDeadlineMs: 2 * DEADLINE_MS },
  });
  onTestFinished(() => runtime.close());
  const tree = await runtime.openTree({ provider: "scripted" });
  /** Time stands still but for back-offs and, where `silent`, for the deadline of an answer. */
  const failed = async (silent = false) => {
    const { agent, work } = await tree.root.spawn("w", "go", { provider: "codex" });
    let failures = 0;
    await waitUntil(
      "its work has ended",
      async () => {
        const { state } = await work.record();
        const seen = (await agent.record()).loadFailures;
        if (silent || seen > failures) await clock.advance(silent ? DEADLINE_MS : 1_000);
        failures = seen;
        return state === "ended";
      },
      { steps: 200_000 },
    );
    expect(await (await tree.root.send("and you?")).outcome()).toMatchObject({ text: "still here" });
    expect(await agent.status()).toMatchObject({ kind: "idle" });
    return work.outcome();
  };
  return failed;
}

test.each(Object.entries(CASES))("RES-8 a program that %s", async (what, { program, reason, told }) => {
  const failed = await opened(process.execPath, ["-e", program]);
  const { ending, error } = await failed(what === "never answers");
  expect({ ending, code: error?.code }).toEqual({ ending: "failed", code: "LOAD_FAILED" });
  expect(error?.message).toContain(`(${reason})`);
  expect(error?.message).toMatch(told);
});

test("RES-8 a program that is not installed", async () => {
  const failed = await opened("codex-that-nobody-has", []);
  expect((await failed()).error?.message).toMatch(/codex-that-nobody-has/u);
});
