/** Real processes on one file: killed under load, frozen, taken over, racing. `test/crash-long` does it longer. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import type { Store } from "../../src/store/port.ts";
import { openTree } from "../../src/testing/store-harness.ts";
import { sampleAgent, sampleId } from "../../src/testing/store-records.ts";
import { surviveKills } from "../support/crash/kills.ts";
import { start } from "../support/crash/start.ts";
import { makeFolder } from "../support/stores.ts";

const kills = Number(process.env["COPPICE_KILLS"]);

function temporaryPath(): string {
  const folder = makeFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return join(folder.path, "store.db");
}

async function open(path: string): Promise<Store> {
  const store = await openSqliteStore({ path, synchronous: "normal", busyTimeoutMs: 30_000 });
  onTestFinished(() => store.close());
  return store;
}

function startWriter(args: readonly string[]) {
  const script = fileURLToPath(new URL("store-writer.ts", import.meta.url));
  const child = spawn(process.execPath, [script, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ready = Promise.withResolvers<void>();
  const watching = new Set<() => void>();
  let count = 0;
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (line === "ready") return ready.resolve();
    count += 1;
    for (const look of watching) look();
  });
  return {
    child,
    ready: ready.promise,
    written: () => count,
    until: (condition: () => boolean) =>
      new Promise<void>((resolve) => watching.add(() => (condition() ? resolve() : undefined))),
  };
}

describe("kill -9", () => {
  test.for(["retry", "notify"] as const)(
    "REC-1 MBX-1 at random moments under load, with %s: every promise holds, nothing acknowledged is lost",
    { timeout: 240_000 },
    (onLostRun) =>
      surviveKills({ kills: Math.ceil(kills / 2), seed: onLostRun === "retry" ? 1 : 2, onLostRun }),
  );
});

describe("two processes on one file", () => {
  test("REC-2 neither gets less than a third of what they write as fast as they can", async () => {
    const path = temporaryPath();
    const store = await open(path);
    const writers = await Promise.all(
      ["one", "two"].map(async (name) => {
        const [tree, worker] = [sampleId("thread", name), sampleId("thread", `${name}_worker`)];
        const lease = await openTree(store, tree);
        await store.commit(lease, (tx) => {
          const record = tx.tree(tree)!;
          tx.putTree({ ...record, limits: { ...record.limits, mailboxMessages: 1e7, mailboxBytes: 1e12 } });
          tx.putAgent(sampleAgent(tree, worker, "/root/worker"));
        });
        return startWriter([path, tree, worker, name, "20"]);
      }),
    );
    await Promise.all(writers.map(({ ready }) => ready));
    for (const { child } of writers) child.stdin.write("go\n");
    // So many that a turn of the machine's own scheduler does not decide.
    const total = (): number => writers.reduce((sum, { written }) => sum + written(), 0);
    await Promise.race(writers.map(({ until }) => until(() => total() >= 60_000)));
    const shares = writers.map(({ written }) => written() / total());
    for (const { child } of writers) child.kill("SIGKILL");
    expect(Math.min(...shares)).toBeGreaterThan(1 / 3);
  });

  test("REC-2 REC-6 a tree has one owner, and is taken over at once when that is proved dead", async () => {
    const path = temporaryPath();
    const owner = start(path, "hold");
    const tree = (await owner.says("ready"))["ready"] as string;
    const second = start(path, "hold", tree);
    expect(await second.says("refused")).toMatchObject({ refused: "NOT_OWNER" });
    await owner.kill();
    const third = start(path, "hold", tree);
    await third.says("ready");
    const store = await open(path);
    const lease = await store.read((view) => view.lease(tree as `thread_${string}`));
    expect(lease).toMatchObject({ live: true, epoch: 2, owner: { pid: third.child.pid } });
    third.go();
    await third.ended;
    expect(await store.read((view) => view.lease(tree as `thread_${string}`)?.live)).toBe(false);
  });

  test("REC-2 REC-6 a frozen owner is taken over when its lease has run out, and its late commit is refused", async () => {
    const path = temporaryPath();
    const runtimeLimits = { leaseMs: 1500, leaseRenewMs: 300, leaseGiveUpMs: 900 };
    const frozen = start(path, "pulse", "-", { runtimeLimits });
    const tree = (await frozen.says("ready"))["ready"] as `thread_${string}`;
    frozen.go();
    await frozen.says("wrote");
    // Idle: a process frozen inside of a transaction would hold the file's lock, and nobody could take over.
    frozen.freeze();
    frozen.go();
    const store = await open(path);
    let next = start(path, "hold", tree);
    // It is alive, so that only its lease's end gives the tree away.
    for (let tries = 0; tries < 200; tries += 1) {
      await next.until(() => next.lines.length > 0);
      if ("ready" in next.lines[0]!) break;
      expect(next.lines[0]).toMatchObject({ refused: "NOT_OWNER" });
      next = start(path, "hold", tree);
    }
    await next.says("ready");
    const stored = (): Promise<number> => store.read((view) => view.mailbox(tree).lastSeq);
    const before = await stored();
    expect(before).toBe(1);
    frozen.thaw();
    expect(await frozen.says("refused")).toMatchObject({ refused: "FENCED" });
    await frozen.ended;
    expect(await stored()).toBe(before);
    expect(await store.read((view) => view.lease(tree))).toMatchObject({ owner: { pid: next.child.pid } });
  });
});

describe("commands of several processes", () => {
  const verb = "send";
  const options = { verb, arguments: { target: "/root", message: "once" }, commandId: "the same" };

  test.for([
    ["with an owner", true],
    ["without one", false],
  ] as const)("REC-2 SPN-6 two that race with one command, %s, have it applied once", async ([, owned]) => {
    const path = temporaryPath();
    const owner = start(path, "hold");
    const tree = (await owner.says("ready"))["ready"] as `thread_${string}`;
    if (!owned) {
      owner.go();
      await owner.ended;
    }
    const racers = [start(path, "command", tree, options), start(path, "command", tree, options)];
    await Promise.all(racers.map((racer) => racer.says("ready")));
    for (const racer of racers) racer.go();
    const receipts = await Promise.all(racers.map((racer) => racer.says("applied")));
    expect(receipts[0]!["answer"]).toEqual(receipts[1]!["answer"]);
    const store = await open(path);
    const [mail, events] = await store.read(
      (view) => [view.mailOf(tree, { limit: 100 }).rows, view.events(tree, 0, 1000)] as const,
    );
    expect(mail.map(({ content }) => content.text)).toEqual(["once"]);
    expect(events.filter(({ type }) => type === "command.applied")).toHaveLength(1);
  });
});
