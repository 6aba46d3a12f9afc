import { join } from "node:path";
import { expect, test } from "vitest";
import { createMemoryStore } from "../../../src/store/memory.ts";
import { openSqliteStore } from "../../../src/store/sqlite.ts";
import { openTree } from "../../../src/testing/store-harness.ts";
import { sampleId, sampleMail } from "../../../src/testing/store-records.ts";
import { makeFolder } from "../../support/stores.ts";

const tree = sampleId("thread", "tree");

test("closing a file stores what was asked for before, and refuses what comes after", async () => {
  using folder = makeFolder();
  const path = join(folder.path, "store.db");
  const store = await openSqliteStore({ path });
  await openTree(store, tree);
  const sent = store.send([sampleMail(tree, tree, 1)]);
  await Promise.all([store.close(), store.close()]);
  expect(await sent).toMatchObject([{ kind: "accepted" }]);
  const refusal = { code: "RUNTIME_CLOSED", message: expect.stringContaining(path) };
  await expect(store.send([sampleMail(tree, tree, 2)])).rejects.toMatchObject(refusal);
  await expect(store.read((view) => view.now())).rejects.toMatchObject(refusal);
  await expect(store.changes()).rejects.toMatchObject(refusal);
  await store.close();
  const again = await openSqliteStore({ path, readOnly: true });
  expect((await again.read((view) => view.mailbox(tree))).unread).toBe(1);
  await again.close();
});

test("closing a store in memory leaves its content to the next who uses the object", async () => {
  const store = createMemoryStore();
  const lease = await openTree(store, tree);
  await store.close();
  await store.commit(lease, (tx) => tx.appendMail(sampleMail(tree, tree, 1)));
  expect((await store.read((view) => view.mailbox(tree))).unread).toBe(1);
});

test("a file that is made for reading is refused", async () => {
  using folder = makeFolder();
  await expect(
    openSqliteStore({ path: join(folder.path, "store.db"), readOnly: true }),
  ).rejects.toMatchObject({ code: "STORE_IO" });
});
