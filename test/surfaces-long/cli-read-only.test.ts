/** A store that can be read and not written: what reads goes on, and what writes says what is in its way. */
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Store } from "../../src/store/port.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";
import { Place } from "../support/cli.ts";

const place = new Place();
const folder = join(place.path, "kept");
const store = join(folder, "store.db");

/** Rights do not bind root, whom only the mark of the file system stops. */
const byMark = process.getuid?.() === 0;

function mark(sign: "+i" | "-i", ...paths: string[]): void {
  execFileSync("chattr", [sign, ...paths], { stdio: "ignore" });
}

/** Containers and some file systems do not let root make anything immutable. */
function canSeal(): boolean {
  if (!byMark) return true;
  const probe = join(place.path, "probe");
  writeFileSync(probe, "");
  try {
    mark("+i", probe);
    mark("-i", probe);
    return true;
  } catch {
    return false;
  }
}

function seal(sealed: boolean): void {
  if (byMark) {
    mark(sealed ? "+i" : "-i", folder, store);
    return;
  }
  chmodSync(store, sealed ? 0o400 : 0o600);
  chmodSync(folder, sealed ? 0o500 : 0o700);
}

const sealable = canSeal();

beforeAll(async () => {
  expect(await place.demo("--dir", place.dir).ended).toMatchObject({ code: 0 });
  mkdirSync(folder);
  copyFileSync(place.store, store);
  if (sealable) seal(true);
});
afterAll(() => {
  if (sealable) seal(false);
  place[Symbol.dispose]();
});

test("REC-3 a command that reads leaves the file as it was", async () => {
  const bytes = readFileSync(place.store);
  expect(await place.run("tree")).toMatchObject({ code: 0 });
  expect(readFileSync(place.store).equals(bytes)).toBe(true);
});

test("REC-3 a store that is opened for reading only refuses what writes, and is read on", async () => {
  await using opened = await openReadOnly(place.store);
  const [tree] = await opened.store.read((view) => view.trees({ limit: 1 }).rows);
  const owner = { host: "h", bootId: "b", pid: 1, startedAt: "1" };
  await expect(
    opened.store.claim({ treeId: tree!.treeId, token: "t", owner, leaseMs: 1, provenDead: () => true }),
  ).rejects.toMatchObject({ code: "STORE_IO", message: expect.stringContaining("for reading only") });
  expect(await opened.store.read((view) => view.tree(tree!.treeId))).toEqual(tree);
});

async function openReadOnly(path: string): Promise<AsyncDisposable & { readonly store: Store }> {
  const opened = await openSqliteStore({ path, readOnly: true });
  return { store: opened, [Symbol.asyncDispose]: () => opened.close() };
}

const unsealed = sealable ? "" : " (skipped: this root may not mark a file as immutable)";

describe.skipIf(!sealable)(`a store in a folder that cannot be written${unsealed}`, () => {
  test.for([["tree"], ["log"], ["works"], ["transfers"], ["why", "/root"], ["owed"]])(
    "REC-3 %j reads it",
    async (command) => {
      const ended = await place.start([...command, "--store", store]).ended;
      expect(ended).toMatchObject({ code: 0 });
      expect(ended.stdout).not.toBe("");
    },
  );

  test("REC-3 `doctor` says that it can be read and not written", async () => {
    const ended = await place.start(["doctor", "--store", store]).ended;
    expect(ended).toMatchObject({ code: 0 });
    expect(ended.stdout).toContain("can be read and not written, 1 tree");
  });

  test("REC-3 what writes names the cause, and that it can be read", async () => {
    const ended = await place.start(["agent", "send", "/root", "hello", "--store", store]).ended;
    expect(ended).toMatchObject({ code: 5, stdout: "" });
    expect(ended.stderr).toMatch(/can be read but not written: the file (is marked|may not be written)/);
  });

  test("REC-3 a log beside it that cannot be read with it is not passed over", async () => {
    seal(false);
    writeFileSync(`${store}-wal`, "what a crash has left");
    seal(true);
    const ended = await place.start(["tree", "--store", store]).ended;
    expect(ended).toMatchObject({ code: 5, stdout: "" });
    expect(ended.stderr).toMatch(/was not closed.*Copy both files/);
  });
});
