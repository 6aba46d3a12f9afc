/**
 * M4 and S4: ten thousand agents in one tree of which 64 may be loaded, a message that goes through all of them, and a flood.
 * Bounds are ratios within one run, a quarter more generous than the goals.
 */
import { expect, test } from "vitest";
import { coppice } from "../contenders/coppice.ts";
import { median, time, timerDelays } from "../lib/measure.ts";
import { floodOf, mechanismChain } from "../workloads/chain.ts";
import { Forwarding } from "../workloads/mail.ts";

const FEW = 100;
const MANY = 10_000;
const SLACK = 1.25;

test("S4 M4 ten thousand agents: each costs what one of a hundred costs, all are listed, a message passes through all", async () => {
  const forwarding = new Forwarding();
  forwarding.size = MANY;
  await using c = await coppice({ store: "memory", scripts: { "*": forwarding.answer } });
  const few: number[] = [];
  for (let at = 0; at < 12; at += 1) {
    const { cpuNs } = await time(() => c.crowd(FEW, { from: MANY + at * FEW }));
    if (at >= 5) few.push(cpuNs / FEW);
  }
  const many = await time(() => c.crowd(MANY));
  expect(many.cpuNs / MANY / median(few)).toBeLessThanOrEqual(1.5 * SLACK);

  const listed = new Set<string>();
  for (let after: string | null = null; ;) {
    const page: Awaited<ReturnType<typeof c.tree.list>> = await c.tree.list({ after, limit: 500 });
    for (const { path } of page.agents) listed.add(path);
    after = page.next;
    if (after === null) break;
  }
  expect(listed.size).toBe(1 + MANY + 12 * FEW);
  expect((await c.tree.counts()).resident).toBeLessThanOrEqual(64);

  // Each is loaded for its turn, and another unloaded for it.
  await forwarding.pass(c, MANY - 1);
  expect((await c.tree.counts()).resident).toBeLessThanOrEqual(64);
  const last = await c.tree.agent(`/root/a${MANY - 1}`);
  expect(await last.status()).toEqual({ kind: "idle", last: "completed" });
});

test("M4 a chain of a hundred thousand through mailbox and admission does not grow the stack", async () => {
  expect(await mechanismChain(100_000)).toMatchObject({ length: 100_000 });
});

test("M4 a flood of mail does not hold up a timer", async () => {
  await using c = await coppice({ store: "memory" });
  await floodOf(c, 0);
  // What must be done at once is a portion of the flood, or one agent's mail.
  const shares: number[] = [];
  for (let at = 1; at <= 3; at += 1) {
    const { longestMs, tookMs } = await timerDelays(1, () => floodOf(c, at));
    shares.push(longestMs / tookMs);
  }
  expect(Math.min(...shares)).toBeLessThanOrEqual(0.2);
});
