/**
 * Waits of agents with time-outs at random (W1), and cancelling a tree of idle agents (C1).
 */
import { coppice } from "../contenders/coppice.ts";
import { abortChain, RawTree } from "../contenders/raw.ts";
import { call, say } from "../../src/providers/scripted/script.ts";
import type { ScriptContext } from "../../src/providers/scripted/context.ts";
import { heapBytes, type Metrics, numbers, time, timerDelays } from "../lib/measure.ts";

const NAIVE = 100_000;
const WAITING = 1000;
const IDLE = 5000;
const HOUR = 3_600_000;

/** `Promise.race` of a message and a timer, which is what a wait is without thinking. */
export async function naiveWaits(): Promise<Metrics> {
  const random = numbers(1);
  const once = async (count: number) => {
    const before = heapBytes();
    const wake: (() => void)[] = [];
    const armed = await time(() =>
      Array.from({ length: count }, async () => {
        const mail = new Promise<string>((resolve) => wake.push(() => resolve("mail")));
        let timer: NodeJS.Timeout | undefined;
        const late = new Promise<string>((resolve) => {
          timer = setTimeout(() => resolve("late"), 10_000 + Math.floor(random() * HOUR));
        });
        const first = await Promise.race([mail, late]);
        clearTimeout(timer);
        return first;
      }),
    );
    const bytes = (heapBytes() - before) / count;
    const satisfied = await time(async () => {
      for (const go of wake) go();
      await Promise.all(armed.value);
    });
    return { us: (armed.cpuNs + satisfied.cpuNs) / 1000 / count, bytes };
  };
  await once(10_000);
  return await once(NAIVE);
}

/**
 * Agents that call `wait_agent`, are sent a message each, and answer. What a run without a wait costs is taken off, so that
 * what is left is the wait. Then all of them wait again, until times that lie within a tenth of a second.
 */
export async function agentWaits(): Promise<Metrics> {
  const random = numbers(1);
  let dueAt = 0;
  const answer = (context: ScriptContext) => {
    const asked = context.inputs.at(-1) ?? "";
    if (context.toolResults.length > 0) return say("ok");
    if (asked.includes("rest"))
      return call("wait_agent", { timeout_ms: 10_000 + Math.floor(random() * (HOUR - 10_000)) });
    if (asked.includes("nap"))
      return call("wait_agent", { timeout_ms: Math.max(1, Math.round(dueAt + random() * 100 - Date.now())) });
    return say("ok");
  };
  await using c = await coppice({
    store: "memory",
    scripts: { "*": answer },
    limits: { residents: 10 * WAITING, waitMinimumMs: 0 },
  });
  const agents = await c.crowd(WAITING);
  const ask = (text: string) => Promise.all(agents.map((agent) => agent.send(text)));
  const all = async (works: Awaited<ReturnType<typeof ask>>) => {
    await Promise.all(works.map((work) => work.outcome()));
  };
  const waiting = async (): Promise<void> => {
    for (;;) {
      const runs = await c.tree.control.read((view) => view.openRuns(c.tree.id));
      if (runs.length === WAITING && runs.every(({ status }) => status === "waiting")) return;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  const plain = await time(async () => all(await ask("answer")));
  const before = heapBytes();
  const armed = await time(async () => {
    const works = await ask("rest");
    await waiting();
    return works;
  });
  const bytes = (heapBytes() - before) / WAITING;
  // What arming has left to collect and to write is not what waiting costs.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const cpu = process.cpuUsage();
  const idleFrom = performance.now();
  await new Promise((resolve) => setTimeout(resolve, 500));
  const idle = process.cpuUsage(cpu);
  const idleMsPerSecond = (idle.user + idle.system) / (performance.now() - idleFrom);
  const satisfied = await time(async () => {
    await Promise.all(agents.map((agent) => agent.tell("go on")));
    await all(armed.value);
  });
  dueAt = Date.now() + 1000 + 3 * (armed.wallNs / 1e6);
  const naps = await ask("nap");
  await waiting();
  const early = dueAt - Date.now();
  const { longestMs } = await timerDelays(1, async () => all(naps));
  return {
    us: (armed.cpuNs + satisfied.cpuNs - plain.cpuNs) / 1000 / WAITING,
    bytes,
    idleMsPerSecond,
    stallMs: longestMs,
    earlyMs: early,
  };
}

export async function abortSignals(): Promise<Metrics> {
  const took: number[] = [];
  for (let at = 0; at < 7; at += 1) {
    const chain = abortChain(IDLE, 100);
    const { wallNs, value } = await time(() => chain.cancel());
    if (value !== IDLE) throw new Error("somebody has not heard");
    took.push(wallNs / 1000 / IDLE);
  }
  return { us: Math.min(...took) };
}

export async function rawWalk(): Promise<Metrics> {
  const tree = new RawTree(async () => "ok");
  const [first] = Array.from({ length: 100 }, (_, at) => tree.add(tree.root, `a${at}`));
  for (let at = 100; at < IDLE - 1; at += 1) tree.add(first!, `a${at}`);
  const took: number[] = [];
  for (let at = 0; at < 21; at += 1) {
    const { wallNs, value } = await time(() => tree.cancel(tree.root));
    took.push(wallNs / 1000 / value);
  }
  return { us: Math.min(...took) };
}

/** An interrupt of the root with all that is below it: nobody runs, so that it finds nothing to end. */
export async function interruptIdle(): Promise<Metrics> {
  await using c = await coppice({ store: "memory" });
  await c.register(IDLE);
  const took: number[] = [];
  for (let at = 0; at < 7; at += 1) {
    const { wallNs } = await time(() => c.tree.root.interrupt({ cascade: "subtree" }));
    took.push(wallNs / 1000 / IDLE);
  }
  const closing = await time(() => c.tree.root.close());
  return { us: Math.min(...took), closeUs: closing.wallNs / 1000 / IDLE };
}
