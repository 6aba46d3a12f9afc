/** Holds the manifest of contracts against the titles of the tests, both ways. */
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { readSources, titlesOf } from "../architecture/scanner.ts";
import { contracts, deferredCeiling } from "./contracts.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const byId = new Map(contracts.map((contract) => [contract.id, contract]));
const families = new Set(contracts.map(({ id }) => familyOf(id)));
const deferred = contracts.filter((contract) => contract.deferred !== undefined);

/** Every id that a test's title starts with, and the files that hold such a test. */
const tested = new Map<string, string[]>();
for (const source of readSources(root, "test").filter(({ path }) => path.endsWith(".test.ts"))) {
  for (const id of titlesOf(source).flatMap(leadingIds)) {
    tested.set(id, [...(tested.get(id) ?? []), source.path]);
  }
}

describe("the manifest", () => {
  test("names every id once", () => {
    expect(contracts.map(({ id }) => id).filter((id, at, all) => all.indexOf(id) !== at)).toEqual([]);
  });

  test("numbers each family without a gap", () => {
    const gaps = [...families].flatMap((family) => {
      const numbers = contracts.filter(({ id }) => familyOf(id) === family).map(({ id }) => numberOf(id));
      return Array.from({ length: Math.max(...numbers) }, (_, at) => at + 1)
        .filter((number) => !numbers.includes(number))
        .map((number) => `${family} ${number}`);
    });
    expect(gaps).toEqual([]);
  });

  test("gives one state to each id", () => {
    const muddled = contracts.filter(
      ({ deferred: later, leftOut, provedBy }) =>
        [later, leftOut, provedBy].filter((state) => state !== undefined).length > 1,
    );
    expect(muddled.map(({ id }) => id)).toEqual([]);
  });

  test("is written in one line each", () => {
    expect(contracts.filter(({ behaviour }) => !/^[^\n]{10,130}\.$/.test(behaviour))).toEqual([]);
  });

  test("lets an id be proved only by ids that stand for themselves", () => {
    const wrong = contracts.flatMap(({ id, provedBy = [] }) =>
      provedBy.filter((other) => !isOwn(other)).map((other) => `${id} by ${other}`),
    );
    expect(wrong).toEqual([]);
  });

  test("defers no more than its ceiling, which only falls", () => {
    expect(deferred.length).toBeLessThanOrEqual(deferredCeiling);
  });
});

describe("the tests", () => {
  test("prove every id that is neither deferred nor left out", () => {
    const open = contracts.filter(
      (contract) =>
        contract.deferred === undefined && contract.leftOut === undefined && contract.provedBy === undefined,
    );
    expect(open.map(({ id }) => id).filter((id) => !tested.has(id))).toEqual([]);
  });

  test("name only ids of the manifest", () => {
    expect([...tested].filter(([id]) => !byId.has(id))).toEqual([]);
  });

  test("name no id that is deferred: remove its deferral and lower the ceiling", () => {
    expect([...tested.keys()].filter((id) => byId.get(id)?.deferred !== undefined)).toEqual([]);
  });

  test("name no id that is left out", () => {
    expect([...tested.keys()].filter((id) => byId.get(id)?.leftOut !== undefined)).toEqual([]);
  });
});

describe("ids in titles", () => {
  const [first = "", second = ""] = contracts.map(({ id }) => id);

  test.for([
    ["ABC-7", []],
    [`${first} a sentence`, [first]],
    [`${first} [sqlite]`, [first]],
    [first, [first]],
    [`${first}: a sentence`, [first]],
    [`${first} ${second} a sentence`, [first, second]],
    [`${first}, ${second}: a sentence`, [first, second]],
    [`a sentence about ${first}`, []],
    [`${first}7x`, []],
  ] as const)("are read from '%s'", ([title, ids]) => {
    expect(leadingIds(title)).toEqual(ids);
  });
});

/** The ids at the start of a title: one or more, set apart by blanks, commas, pluses or strokes. */
function leadingIds(title: string): string[] {
  const ids: string[] = [];
  for (let rest = title; ;) {
    // Clauses (`C4.13`) stand beside the ids of rows, and have none of their own.
    rest = rest.replace(/^(?:C\d+\.\d+[\s,+/:]*)+/, "");
    const [matched, id] = /^([A-Z]+\d*-\d+|[A-Z]+\d+)(?![\w-])[\s,+/:]*/.exec(rest) ?? [];
    if (matched === undefined || id === undefined || !families.has(familyOf(id))) return ids;
    ids.push(id);
    rest = rest.slice(matched.length);
  }
}

/** A test of its own stands behind it: it is not deferred, not left out, and not itself proved by others. */
function isOwn(id: string): boolean {
  const contract = byId.get(id);
  if (contract === undefined) return false;
  return [contract.deferred, contract.leftOut, contract.provedBy].every((state) => state === undefined);
}

function familyOf(id: string): string {
  return id.replace(/\d+$/, "");
}

function numberOf(id: string): number {
  return Number(/\d+$/.exec(id)?.[0]);
}
