/** A store that can be read and not written: what reads goes on, and what writes says what is in its way. */
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Place } from "../support/cli.ts";

const place = new Place();
const folder = join(place.path, "kept");
const store = join(folder, "store.db");

/** Rights do not bind root, whom only the mark of the file system stops. */
function seal(sealed: boolean): void {
  if (process.getuid?.() === 0) {
    execFileSync("chattr", [sealed ? "+i" : "-i", folder, store]);
    return;
  }
  chmodSync(store, sealed ? 0o400 : 0o600);
  chmodSync(folder, sealed ? 0o500 : 0o700);
}

beforeAll(async () => {
  expect(await place.demo("--dir", place.dir).ended).toMatchObject({ code: 0 });
  mkdirSync(folder);
  copyFileSync(place.store, store);
  seal(true);
});
afterAll(() => {
  seal(false);
  place[Symbol.dispose]();
});

describe("a store in a folder that cannot be written", () => {
  test.for([["tree"], ["log"], ["works"], ["transfers"], ["why", "/root"], ["owed"]])(
    "REC-3 %j reads it",
    async (command) => {
      const ended = await place.start([...command, "--store", store]).ended;
      expect(ended).toMatchObject({ code: 0 });
      expect(ended.stdout).not.toBe("");
    },
  );

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
