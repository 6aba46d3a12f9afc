/** A file that is taken away from under an open store. */
import { renameSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqliteStore } from "../../../src/store/sqlite.ts";
import { createRuntime } from "../../../src/runtime/create-runtime.ts";
import { scripted } from "../../../src/providers/scripted/provider.ts";
import { repeat, say } from "../../../src/providers/scripted/script.ts";
import { makeFolder } from "../../support/stores.ts";

const moved = (path: string, from: string, to: string): void => {
  for (const end of ["", "-wal", "-shm"]) renameSync(`${path}${from}${end}`, `${path}${to}${end}`);
};

test("MBX-1 REC-3 nothing is acknowledged in a file that was removed or replaced; put back, it goes on", async () => {
  using folder = makeFolder();
  const path = join(folder.path, "store");
  const store = await openSqliteStore({ path, synchronous: "normal" });
  await using runtime = await createRuntime({
    store,
    providers: { scripted: scripted({ "/root": [repeat(say("ok"))] }) },
  });
  const tree = await runtime.openTree();
  await (await tree.root.send("first")).outcome();
  moved(path, "", ".away");
  await expect(tree.root.tell("lost?")).rejects.toMatchObject({
    code: "STORE_IO",
    message: expect.stringContaining("was removed while it was open"),
  });
  const another = await openSqliteStore({ path, synchronous: "normal" });
  await expect(tree.root.tell("lost?")).rejects.toMatchObject({
    code: "STORE_IO",
    message: expect.stringContaining("was replaced while it was open"),
  });
  expect(await another.read((view) => view.trees({ limit: 10 }).rows)).toEqual([]);
  await another.close();
  renameSync(path, `${path}.other`);
  moved(path, ".away", "");
  expect(await (await tree.root.send("second")).outcome()).toMatchObject({ ending: "completed" });
  await runtime.close();
  await store.close();
});
