/** Faults of a real file: locks, space, rights, damage, versions, kills. Nothing here is simulated. */
import type { MailDraft } from "../../src/protocol/mail.ts";
import { spawn } from "node:child_process";
import { chmodSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { TransientError } from "../../src/protocol/errors.ts";
import type { Lease, Store } from "../../src/store/port.ts";
import { openSqliteStore, type SqliteStoreOptions } from "../../src/store/sqlite.ts";
import { createSetClock, LEASE_MS, openTree } from "../../src/testing/store-harness.ts";
import { sampleAgent, sampleId, sampleMail } from "../../src/testing/store-records.ts";
import { makeFolder, openRaw } from "../support/stores.ts";

const tree = sampleId("thread", "tree");
const worker = sampleId("thread", "worker");

function temporaryPath(name = "store.db"): string {
  const folder = makeFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return join(folder.path, name);
}

async function open(path: string, options: Partial<SqliteStoreOptions> = {}): Promise<Store> {
  const store = await openSqliteStore({ path, busyTimeoutMs: 40, ...options });
  onTestFinished(() => store.close());
  return store;
}

/** A store with a tree, a worker and one message; closed again. */
async function filled(path: string): Promise<Lease> {
  const store = await openSqliteStore({ path });
  const lease = await openTree(store, tree);
  await store.commit(lease, (tx) => tx.putAgent(sampleAgent(tree, worker, "/root/worker")));
  await store.send([sampleMail(tree, worker, 1)]);
  await store.close();
  return lease;
}

const title = (store: Store): Promise<string | null | undefined> =>
  store.read((view) => view.tree(tree)?.title);

function rename(store: Store, lease: Lease, text: string): Promise<void> {
  return store.commit(lease, (tx) => tx.putTree({ ...tx.tree(tree)!, title: text }));
}

describe("a store that cannot write", () => {
  test("REC-3 opened for reading, it reads, and says that it does not write", async () => {
    const path = temporaryPath();
    const lease = await filled(path);
    const store = await open(path, { readOnly: true });
    expect((await store.read((view) => view.mailbox(worker))).unread).toBe(1);
    await expect(rename(store, lease, "new")).rejects.toMatchObject({
      code: "STORE_IO",
      retryable: true,
      message: expect.stringContaining("right to write"),
    });
    expect(await title(store)).toBe(null);
  });

  test("REC-3 full, it refuses the whole group, keeps nothing of it, and goes on when there is room", async () => {
    const path = temporaryPath();
    await filled(path);
    using other = openRaw(path);
    const pages = Number(Object.values(other.database.prepare("PRAGMA page_count").get()!)[0]);
    const store = await open(path, { maxPageCount: pages + 8 });
    const lease = await store.claim({
      treeId: tree,
      token: "token",
      owner: { host: "h", bootId: "b", pid: 1, startedAt: "1" },
      leaseMs: LEASE_MS,
      provenDead: () => true,
    });
    const outcomes = await Promise.allSettled([
      rename(store, lease, "beside"),
      store.commit(lease, (tx) =>
        tx.appendMail(sampleMail(tree, worker, 2, { text: "x".repeat(1_000_000) })),
      ),
      store.send([sampleMail(tree, worker, 3)]),
    ]);
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({
        status: "rejected",
        reason: { code: "STORE_FULL", family: "transient" },
      });
    }
    expect(await title(store)).toBe(null);
    expect((await store.read((view) => view.mailbox(worker))).lastSeq).toBe(1);
    await rename(store, lease, "later");
    expect((await store.send([sampleMail(tree, worker, 4)]))[0]).toMatchObject({ kind: "accepted", seq: 2 });
    expect(await title(store)).toBe("later");
  });

  test("REC-3 locked by another connection, it refuses after its time and works again after that", async () => {
    const path = temporaryPath();
    const lease = await filled(path);
    const store = await open(path);
    using other = openRaw(path);
    other.database.exec("BEGIN EXCLUSIVE");
    expect(await title(store)).toBe(null);
    const outcomes = await Promise.allSettled([rename(store, lease, "a"), rename(store, lease, "b")]);
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ reason: { code: "STORE_BUSY", retryAfterMs: 100 } });
      expect((outcome as PromiseRejectedResult).reason).toBeInstanceOf(TransientError);
    }
    other.database.exec("ROLLBACK");
    await rename(store, lease, "c");
    expect(await title(store)).toBe("c");
  });

  test("waits for a lock with the event loop running, and then commits in order", async () => {
    const path = temporaryPath();
    const lease = await filled(path);
    const store = await open(path, { busyTimeoutMs: 10_000 });
    using other = openRaw(path);
    other.database.exec("BEGIN IMMEDIATE");
    const order: string[] = [];
    const first = rename(store, lease, "a").then(() => order.push("a"));
    await new Promise((resolve) => setImmediate(resolve));
    const second = rename(store, lease, "b").then(() => order.push("b"));
    for (let turn = 0; turn < 300; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(order).toEqual([]);
    other.database.exec("COMMIT");
    await Promise.all([first, second]);
    expect(order).toEqual(["a", "b"]);
    expect(await title(store)).toBe("b");
  });

  test("held by one process alone, it refuses a second opener", async () => {
    const path = temporaryPath();
    const first = await open(path, { exclusive: true });
    await expect(open(path)).rejects.toMatchObject({ code: "STORE_BUSY" });
    await expect(open(path, { exclusive: true })).rejects.toMatchObject({ code: "STORE_BUSY" });
    await first.close();
    await open(path);
    await expect(open(path, { exclusive: true })).rejects.toMatchObject({ code: "STORE_BUSY" });
  });
});

describe("a file that is not ours to use", () => {
  test("REC-3 of a newer version, it is refused and left as it is", async () => {
    const path = temporaryPath();
    await filled(path);
    using other = openRaw(path);
    other.database.exec("PRAGMA user_version = 999; PRAGMA journal_mode = DELETE");
    other.database.close();
    const before = readFileSync(path);
    await expect(open(path)).rejects.toMatchObject({ code: "STORE_VERSION", details: { version: 999 } });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test("REC-3 with anything else in it, it is refused and left as it is", async () => {
    const path = temporaryPath();
    const garbage = Buffer.from("this is not a database. ".repeat(500));
    writeFileSync(path, garbage);
    await expect(open(path)).rejects.toMatchObject({ code: "STORE_CORRUPT", family: "rejected" });
    expect(readFileSync(path).equals(garbage)).toBe(true);
  });

  test("REC-3 cut short, it is refused", async () => {
    const path = temporaryPath();
    await filled(path);
    for (const bytes of [Math.floor(statSync(path).size / 2), 700, 50]) {
      truncateSync(path, bytes);
      await expect(open(path)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    }
  });

  test("REC-3 of another program, it is refused and left as it is", async () => {
    const path = temporaryPath();
    using other = openRaw(path);
    other.database.exec("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('one')");
    other.database.close();
    const before = readFileSync(path);
    await expect(open(path)).rejects.toMatchObject({
      code: "STORE_CORRUPT",
      message: expect.stringContaining("another program"),
    });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test("REC-3 where it cannot be made, the folder is named", async () => {
    const path = temporaryPath("file");
    writeFileSync(path, "");
    await expect(open(join(path, "store.db"))).rejects.toMatchObject({
      code: "STORE_IO",
      details: { path: join(path, "store.db") },
    });
  });
});

describe("a row that is broken", () => {
  test("REC-3 is named with its table, and the rest can be read", async () => {
    const path = temporaryPath();
    const lease = await filled(path);
    const store = await open(path);
    expect(await title(store)).toBe(null);
    using other = openRaw(path);
    other.database.prepare("UPDATE agents SET body = '{' WHERE id = ?").run(worker);
    await expect(store.read((view) => view.agent(worker))).rejects.toMatchObject({
      code: "STORE_CORRUPT",
      details: { table: "agents", id: worker },
    });
    await expect(store.commit(lease, (tx) => tx.agent(worker))).rejects.toMatchObject({
      code: "STORE_CORRUPT",
    });
    await rename(store, lease, "still here");
    expect(await title(store)).toBe("still here");
  });

  test("of mail with the wrong shape is unreadable, whatever it is", async () => {
    const path = temporaryPath();
    await filled(path);
    const store = await open(path);
    using other = openRaw(path);
    for (const body of ["null", "[]", "7", '"text"', "{}", "", '{"id":"msg_1","seq":1}']) {
      other.database.prepare("UPDATE mail SET body = ?").run(body);
      expect(
        await store.read((view) => [view.unread(worker, { limit: 9 }), view.unreadable(worker)]),
      ).toEqual([[], [sampleId("msg", 1)]]);
    }
  });
});

describe("a draft that cannot be stored", () => {
  test("rejects its own send and no other of the same tick", async () => {
    const path = temporaryPath();
    const lease = await filled(path);
    const store = await open(path);
    const broken = { ...sampleMail(tree, worker, 4), content: undefined as unknown as MailDraft["content"] };
    const outcomes = await Promise.allSettled([
      store.send([sampleMail(tree, worker, 2)]),
      store.send([sampleMail(tree, worker, 3), broken]),
      rename(store, lease, "beside"),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await title(store)).toBe("beside");
    const seqs = await store.read((view) => view.mailOf(worker, { limit: 9 }).rows.map(({ id }) => id));
    expect(seqs).toEqual([sampleId("msg", 1), sampleId("msg", 2)]);
  });
});

describe("files", () => {
  test("SEC-3 the file, its log and its folder are private", async () => {
    const path = temporaryPath("made/store.db");
    const store = await open(path);
    await openTree(store, tree);
    const mode = (name: string): string => (statSync(name).mode & 0o777).toString(8);
    expect([mode(path), mode(`${path}-wal`), mode(`${path}-shm`), mode(join(path, ".."))]).toEqual([
      "600",
      "600",
      "600",
      "700",
    ]);
    await store.close();
    chmodSync(path, 0o644);
    await open(path);
    expect(mode(path)).toBe("600");
  });

  test("written by two connections are seen by both", async () => {
    const path = temporaryPath();
    await filled(path);
    const [one, two] = [await open(path), await open(path)];
    expect(await one.read((view) => [view.mailbox(worker).unread, view.tree(tree)?.title])).toEqual([
      1,
      null,
    ]);
    const before = await one.changes();
    expect(await one.changes()).toBe(before);
    expect(await two.send([sampleMail(tree, worker, 2), sampleMail(tree, worker, 1)])).toMatchObject([
      { kind: "accepted", seq: 2 },
      { kind: "duplicate" },
    ]);
    expect(await one.changes()).not.toBe(before);
    expect((await one.read((view) => view.mailbox(worker))).unread).toBe(2);
    expect(await one.send([sampleMail(tree, worker, 3)])).toMatchObject([{ kind: "accepted", seq: 3 }]);
  });

  test("a clock that is set is the store's clock, for every process", async () => {
    const path = temporaryPath();
    const clock = createSetClock();
    const [one, two] = [await open(path, { clock }), await open(path, { clock })];
    const lease = await openTree(one, tree);
    const claim = () =>
      two.claim({
        treeId: tree,
        token: "second",
        owner: { host: "h", bootId: "b", pid: 2, startedAt: "2" },
        leaseMs: LEASE_MS,
        provenDead: () => false,
      });
    await expect(claim()).rejects.toMatchObject({ code: "NOT_OWNER" });
    clock.set(clock.now() + LEASE_MS);
    await claim();
    await expect(one.commit(lease, () => 0)).rejects.toMatchObject({ code: "FENCED" });
  });
});

describe("processes", () => {
  function startWriter(path: string, prefix: string, producers: number) {
    const script = fileURLToPath(new URL("store-writer.ts", import.meta.url));
    const child = spawn(process.execPath, [script, path, tree, worker, prefix, String(producers)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const acknowledged: string[] = [];
    const lines = createInterface({ input: child.stdout });
    const reached = Promise.withResolvers<void>();
    const ready = Promise.withResolvers<void>();
    let goal = Infinity;
    lines.on("line", (line) => {
      if (line === "ready") return ready.resolve();
      acknowledged.push(line);
      if (acknowledged.length >= goal) reached.resolve();
    });
    const closed = new Promise<void>((resolve) => lines.on("close", resolve));
    child.on("exit", () => reached.resolve());
    onTestFinished(() => void child.kill("SIGKILL"));
    return {
      acknowledged,
      ready: ready.promise,
      closed,
      child,
      after: (count: number) => {
        goal = count;
        return reached.promise;
      },
    };
  }

  async function roomy(path: string): Promise<void> {
    const lease = await filled(path);
    const store = await open(path);
    await store.commit(lease, (tx) => {
      const record = tx.tree(tree)!;
      tx.putTree({
        ...record,
        limits: { ...record.limits, mailboxMessages: 10_000_000, mailboxBytes: 1e12 },
      });
    });
    await store.close();
  }

  test("MBX-1 mail that was acknowledged is there after the sender was killed", async () => {
    const path = temporaryPath();
    await roomy(path);
    const writer = startWriter(path, "a", 20);
    await writer.ready;
    writer.child.stdin.write("go\n");
    await writer.after(500);
    writer.child.kill("SIGKILL");
    await writer.closed;
    const store = await open(path);
    const [stored, box] = await store.read(
      (view) => [view.mailOf(worker, { limit: 1e6 }).rows, view.mailbox(worker)] as const,
    );
    const bySeq = new Map(stored.map((mail) => [mail.id as string, mail.seq]));
    expect(writer.acknowledged.length).toBeGreaterThanOrEqual(500);
    for (const line of writer.acknowledged) {
      const [name = "", seq] = line.split(" ");
      expect(bySeq.get(sampleId("msg", name))).toBe(Number(seq));
    }
    expect(stored.map(({ seq }) => seq)).toEqual(stored.map((_, at) => at + 1));
    expect([box.unread, box.lastSeq]).toEqual([stored.length, stored.length]);
  });
});
