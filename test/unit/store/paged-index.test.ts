/** Long lists in memory: what a page costs, and that pages follow what moves between lists. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { Journal } from "../../../src/store/memory/journal.ts";
import type { Row } from "../../../src/store/memory/keys.ts";
import { PagedIndex } from "../../../src/store/memory/paged-index.ts";
import { Table } from "../../../src/store/memory/table.ts";

interface Thing {
  readonly id: string;
  readonly keys: readonly string[];
}

/** Counts what is read of it. */
class CountingRows extends Map<string, Row<Thing>> {
  reads = 0;

  override get(id: string): Row<Thing> | undefined {
    this.reads += 1;
    return super.get(id);
  }
}

test("S1-55 a page reads the rows that it returns, of a list of 100,000", () => {
  const rows = new CountingRows();
  const index = new PagedIndex<Thing>(rows, ({ keys }) => keys, undefined);
  for (let place = 0; place < 100_000; place += 1) {
    const record = { id: `t${place}`, keys: ["all"] };
    rows.set(record.id, { place, record });
    index.move(record.id, undefined, record, place);
  }
  rows.reads = 0;
  const first = index.page("all", { limit: 10 }, "newest first");
  expect(first.rows.map(({ id }) => id)).toEqual(Array.from({ length: 10 }, (_, at) => `t${99_999 - at}`));
  expect(rows.reads).toBeLessThanOrEqual(11);
  rows.reads = 0;
  const second = index.page("all", { limit: 10, after: "t50000" }, "oldest first");
  expect(second.rows.map(({ id }) => id)).toEqual(Array.from({ length: 10 }, (_, at) => `t${50_001 + at}`));
  expect(rows.reads).toBeLessThanOrEqual(11);
});

test("pages are those of a list that is sorted anew each time, also after a rollback", () => {
  const names = fc.integer({ min: 0, max: 9 }).map((n) => `r${n}`);
  const keys = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 3 });
  const step = fc.record({ name: names, keys, undone: fc.boolean(), removed: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.integer({ min: 1, max: 4 }), (steps, limit) => {
      const journal = new Journal();
      const table = new Table<Thing>(
        journal,
        (record) => record,
        ({ id }) => id,
      );
      const index = table.paged((thing) => thing.keys);
      const all = table.index(() => "all");
      for (const { name, keys: given, undone, removed } of steps) {
        journal.begin();
        if (removed) table.remove(name);
        else table.put({ id: name, keys: given });
        if (undone) journal.rollback();
        else journal.keep();
      }
      for (const key of ["a", "b", "c"]) {
        const whole = all
          .get("all")
          .filter((thing) => thing.keys.includes(key))
          .map(({ id }) => id);
        for (const order of ["oldest first", "newest first"] as const) {
          const walked: string[] = [];
          for (let after: string | null = null; ;) {
            const page = index.page(key, { after, limit }, order);
            walked.push(...page.rows.map(({ id }) => id));
            if (page.next === null) break;
            after = page.next;
          }
          expect(walked).toEqual(order === "oldest first" ? whole : whole.toReversed());
        }
      }
    }),
  );
});
