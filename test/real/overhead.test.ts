/**
 * What it costs to have a real agent in a tree, beside driving its program by hand: the time to an answer of a model that answers
 * at once, so that what is left is the program's and ours; processes and memory for one agent and for four. The figures are
 * printed; what is asserted holds on every machine.
 */
import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import type { NativeAdapter } from "../../src/providers/port.ts";
import { createCodexProvider } from "../../src/providers/codex/codex-provider.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import { createMemoryStore } from "../../src/store/memory.ts";
import { startModelServer } from "../support/model-server/model-server.ts";
import { ask } from "../support/model-server/script.ts";
import { processesWith } from "../support/processes.ts";
import { claudeAdapter, claudeHome, type ClaudeModule, claudeOptions } from "./support/claude.ts";
import { codexHome, speakCodex } from "./support/codex.ts";
import type { Home } from "./support/home.ts";
import { openCodeAdapter, openCodeHome, serveOpenCode } from "./support/opencode.ts";
import type { ProgramName } from "./support/programs.ts";
import { testReal } from "./support/test-real.ts";

/** Gives one conversation a prompt, and resolves with its answer. */
type Turn = (prompt: string) => Promise<void>;

const ROUNDS = 11;
const AGENTS = ["one", "two", "three"];
/** Far above what is measured: a bound that only a fault reaches. */
const MOST = 3;
const PROMPT = ask.text("seen it");

async function measure(
  name: ProgramName,
  { direct, adapter, home }: { readonly direct: Turn; readonly adapter: NativeAdapter; readonly home: Home },
): Promise<void> {
  await using runtime = await createRuntime({ store: createMemoryStore(), providers: { it: adapter } });
  const begun = systemClock.monotonic();
  const tree = await runtime.openTree({ provider: "it", workspace: home.workspace });
  const ours: Turn = async (prompt) => {
    expect(await (await tree.root.send(prompt)).outcome()).toMatchObject({
      ending: "completed",
      text: "seen it",
    });
  };
  await direct(PROMPT);
  await ours(PROMPT);
  const first = systemClock.monotonic() - begun;
  const alone = footprint(home);
  const ratios: number[] = [];
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const [by, of] = [await timed(direct), await timed(ours)];
    ratios.push(of / by);
    times.push(by);
  }
  await Promise.all(AGENTS.map(async (agent) => (await tree.root.spawn(agent, PROMPT)).work.outcome()));
  const together = footprint(home);
  const ratio = median(ratios);
  const each = (together.megabytes - alone.megabytes) / AGENTS.length;
  console.log(
    [
      `${name}: an answer takes ${ratio.toFixed(2)} times as long as from the program alone (${median(times).toFixed(0)} ms)`,
      `the first one ${(first / median(times)).toFixed(0)} times, as the program starts`,
      `${alone.megabytes.toFixed(0)} MB in ${alone.processes} processes for one agent, ${each.toFixed(0)} MB for each more, in ${together.processes} for four`,
    ].join("; "),
  );
  expect(ratio).toBeLessThan(MOST);
}

async function timed(turn: Turn): Promise<number> {
  const begun = systemClock.monotonic();
  await turn(PROMPT);
  return systemClock.monotonic() - begun;
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!;
}

/** What the programs of a home take: memory that no other process shares, and their number. */
function footprint({ path }: Home): { readonly megabytes: number; readonly processes: number } {
  const running = processesWith(`HOME=${path}`);
  const kilobytes = running.map(({ pid }) => {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
    const own = rollup.matchAll(/^Private_(?:Clean|Dirty):\s+(\d+) kB/gm);
    return [...own].reduce((sum, [, size]) => sum + Number(size), 0);
  });
  return { megabytes: kilobytes.reduce((sum, size) => sum + size, 0) / 1024, processes: running.length };
}

testReal("codex", "costs little beside its program alone", async (codex) => {
  await using server = await startModelServer();
  const { request, told, peer } = await speakCodex(codex, codexHome(server));
  const { thread } = await request("thread/start", {});
  const direct: Turn = async (text) => {
    const { turn } = await request("turn/start", { threadId: thread.id, input: [{ type: "text", text }] });
    await told.next(({ method, params }) => method === "turn/completed" && params.turn.id === turn.id);
  };
  const home = codexHome(server);
  const adapter = createCodexProvider({ command: codex.command, args: codex.args, env: home.env });
  await measure("codex", { direct, adapter, home });
  await peer.end({ graceMs: 0 });
});

testReal("claude", "costs little beside its program alone", async (claude) => {
  await using server = await startModelServer();
  const { query } = (await import(claude.module!)) as ClaudeModule;
  const prompts = new TransformStream<object, object>(undefined, undefined, { highWaterMark: 10 });
  const writer = prompts.writable.getWriter();
  const options = claudeOptions(claude, claudeHome(server));
  const messages = query({ prompt: prompts.readable, options })[Symbol.asyncIterator]();
  const direct: Turn = async (content) => {
    await writer.write({ type: "user", message: { role: "user", content }, parent_tool_use_id: null });
    while ((await messages.next()).value.type !== "result");
  };
  const home = claudeHome(server);
  await measure("claude", { direct, adapter: await claudeAdapter(claude, home), home });
  await writer.close();
});

testReal("opencode", "costs little beside its program alone", async (openCode) => {
  await using server = await startModelServer();
  const { request, program } = await serveOpenCode(openCode, openCodeHome(server));
  const { id } = await request("POST", "/session", {});
  const direct: Turn = async (text) => {
    await request("POST", `/session/${id}/message`, { parts: [{ type: "text", text }] });
  };
  const home = openCodeHome(server);
  await measure("opencode", { direct, adapter: openCodeAdapter(openCode, home), home });
  await program.end({ graceMs: 0 });
});
