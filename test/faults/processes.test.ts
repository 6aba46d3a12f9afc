/** Processes that the runtime starts for its agents, with real ones (REC-4, REC-6, INT-3). */
import { getEventListeners } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { startProcess } from "../../src/control/processes.ts";
import type { StartedProcess, StartProcess } from "../../src/platform/process.ts";
import {
  groupLives,
  signalGroup,
  startGroup,
  unregisteredProcesses,
} from "../../src/platform/process-group.ts";
import { ownIdentity, processStart } from "../../src/platform/process-identity.ts";
import { scripted } from "../../src/providers/scripted/provider.ts";
import { call, gate, repeat, say, together } from "../../src/providers/scripted/script.ts";
import { createRuntime } from "../../src/runtime/create-runtime.ts";
import type { TreeHandle } from "../../src/runtime/tree-handle.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import type { ProcessGroup, Store } from "../../src/store/port.ts";
import { virtualClock } from "../../src/testing/virtual-clock.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { start } from "../support/crash/start.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { makeFolder } from "../support/stores.ts";

/** Two processes that never end by themselves: a shell, and what it has put into the background. */
const FAMILY = "sleep 1000 & echo up; wait";

const started: StartedProcess[] = [];
const serve = defineTool({
  name: "serve",
  input: z.strictObject({ script: z.string() }),
  effects: ["execute"],
  run: async ({ script }, run) => {
    const process = await run.startProcess({ command: "/bin/sh", args: ["-c", script] });
    started.push(process);
    if (script === FAMILY) await new Promise((resolve) => process.stdout.once("data", resolve));
    return { pid: process.pid };
  },
});

async function opened(
  path: string,
  tree?: string,
): Promise<{ store: Store; tree: TreeHandle; gates: ReturnType<typeof scripted>["gates"] }> {
  const store = await openSqliteStore({ path, synchronous: "normal", busyTimeoutMs: 30_000 });
  const provider = scripted({
    "*": [call("serve", { script: FAMILY }), together(gate("after"), say("served")), repeat(say("more"))],
  });
  const runtime = await createRuntime({ store, providers: { scripted: provider }, tools: [serve] });
  onTestFinished(async () => {
    await runtime.close();
    await store.close();
  });
  return {
    store,
    tree: await runtime.openTree(tree === undefined ? {} : { id: tree }),
    gates: provider.gates,
  };
}

function temporaryPath(): string {
  const folder = makeFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return join(folder.path, "store.db");
}

const rows = (store: Store, tree: string): Promise<readonly ProcessGroup[]> =>
  store.read((view) => view.processGroups(tree as `thread_${string}`));
const gone = (pgid: number): Promise<void> =>
  waitUntil("the whole group is gone", () => !groupLives(pgid), { steps: 200_000 });

describe("a process of an agent", () => {
  test("REC-4 is registered on disk before it runs, and leads a group of its own", async () => {
    const { store, tree, gates } = await opened(temporaryPath());
    const work = await tree.root.send("serve");
    await gates.arrived("after");
    const { pid } = started.at(-1)!;
    const run = (await tree.root.record()).currentRun;
    expect(await rows(store, tree.id)).toEqual([
      {
        treeId: tree.id,
        threadId: tree.id,
        runId: run,
        pgid: pid,
        startedAt: processStart(pid),
        owner: ownIdentity(),
      },
    ]);
    expect(groupLives(pid)).toBe(true);
    gates.open("after");
    await work.outcome();
    // It outlasts its call and its run, and ends with its tree.
    expect(groupLives(pid)).toBe(true);
    await tree.close();
    await gone(pid);
  });

  test("REC-4 INT-3 an interrupt ends all of its group", async () => {
    const { store, tree, gates } = await opened(temporaryPath());
    await tree.root.send("serve");
    await gates.arrived("after");
    const { pid, exited } = started.at(-1)!;
    await tree.root.interrupt();
    await exited;
    await gone(pid);
    await waitUntil("its row is removed", async () => (await rows(store, tree.id)).length === 0, {
      steps: 200_000,
    });
  });

  test("REC-4 whoever dies before it is registered leaves nothing running", async () => {
    const marker = temporaryPath();
    const leader = await startGroup({ command: "/bin/sh", args: ["-c", `touch ${marker}`] });
    // As its parent's death would: the channel it waits on is closed without a word.
    const exited = leader.exited;
    leader.abandon();
    expect(await exited).toMatchObject({ code: 125 });
    expect(existsSync(marker)).toBe(false);
    await gone(leader.pgid);
  });

  test("REC-4 whoever has ended and is collected by nobody is gone", async () => {
    // What is left behind becomes the child of a program that never asks for the ends of its children.
    const script = "setsid sleep 0 & echo $!; exec sleep 1000";
    const parent = await startGroup({ command: "/bin/sh", args: ["-c", script] });
    onTestFinished(() => void signalGroup(parent.pgid, parent.startedAt, "SIGKILL"));
    const says = new Promise((resolve) => parent.stdout.once("data", resolve));
    parent.letGo();
    const pid = Number(String(await says));
    await gone(pid);
    expect(() => process.kill(pid, 0), "its id is still taken").not.toThrow();
  });

  test("INT-4 REC-4 with its group nothing of it is left at the signal that it was to end with", async () => {
    const { tree } = await opened(temporaryPath());
    const about = { threadId: tree.root.threadId, runId: "run_one" as const };
    const start: StartProcess = (spec, signal) => startProcess(tree.control.tree, about, spec, signal);
    const lifetime = new AbortController();
    const { pid } = await start({ command: "/bin/sleep", args: ["1000"] }, lifetime.signal);
    for (let n = 0; n < 3; n += 1) await start({ command: "/bin/true" }, lifetime.signal);
    const listeners = (): number => getEventListeners(lifetime.signal, "abort").length;
    await waitUntil("the one that lives is left", () => listeners() === 1, { steps: 200_000 });
    lifetime.abort();
    await gone(pid);
  });

  test("INT-4 nor of one that nobody has registered", async () => {
    const clock = virtualClock();
    const { signal } = new AbortController();
    const one = await unregisteredProcesses(clock, 1000)({ command: "/bin/true" }, signal);
    await one.exited;
    // Whoever holds its leash is in its group.
    signalGroup(one.pid, one.startedAt, "SIGKILL");
    await gone(one.pid);
    await clock.advance(1000);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test("REC-4 an id that is another's by now is left alone", async () => {
    const leader = await startGroup({ command: "/bin/sleep", args: ["1000"] });
    leader.letGo();
    onTestFinished(() => void signalGroup(leader.pgid, leader.startedAt, "SIGKILL"));
    expect(signalGroup(leader.pgid, "1", "SIGKILL")).toBe(false);
    expect(groupLives(leader.pgid)).toBe(true);
    expect(signalGroup(leader.pgid, leader.startedAt, "SIGKILL")).toBe(true);
    await gone(leader.pgid);
  });
});

describe("the processes of a killed owner", () => {
  test("REC-4 REC-6 are swept by the next one before it dispatches anything", async () => {
    const path = temporaryPath();
    const owner = start(path, "serve");
    const tree = (await owner.says("ready"))["ready"] as string;
    const { pid } = (await owner.says("pid")) as { pid: number };
    expect(groupLives(pid)).toBe(true);
    await owner.kill();
    // Orphaned, and alive.
    expect(groupLives(pid)).toBe(true);
    const { store, tree: next } = await opened(path, tree);
    await gone(pid);
    expect(await rows(store, tree)).toEqual([]);
    expect(next.owned).toBe(true);
  });
});
