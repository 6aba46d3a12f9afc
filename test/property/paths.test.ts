/** Laws of agent paths: the grammar is the oracle, and a refusal is the only fault (SPN-1; agents.md 1 to 8). */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type AgentPath,
  branchOf,
  childPath,
  depthOf,
  isWithin,
  parentPath,
  parseTaskName,
  resolveReference,
  ROOT_PATH,
} from "../../src/protocol/agent-path.ts";
import { RejectedError } from "../../src/protocol/errors.ts";

const NAME = /^[a-z0-9_]+$/;
const isName = (text: string): boolean => NAME.test(text) && text !== "root";

const name = fc.stringMatching(/^[a-z0-9_]{1,12}$/).filter(isName);
const path = fc.array(name, { maxLength: 6 }).map((names) => names.reduce<AgentPath>(childPath, ROOT_PATH));
/** Near the grammar more often than not. */
const reference = fc.oneof(
  fc.string({ unit: "binary" }),
  fc
    .array(fc.oneof(name, fc.constantFrom("", ".", "..", "root", "A", "\n", "é", "\uD800", " a")), {
      maxLength: 5,
    })
    .chain((parts) => fc.constantFrom("", "/", "/root/", "root/").map((head) => head + parts.join("/"))),
);

/** What is returned; null for a refusal. Anything else that is thrown fails the test. */
function orNull<T>(call: () => T): T | null {
  try {
    return call();
  } catch (error) {
    if (error instanceof RejectedError && error.code === "INVALID_ARGUMENT") return null;
    throw error;
  }
}

test("SPN-1 a task name is taken exactly when the grammar has it, and a refusal is all that is thrown", () => {
  fc.assert(
    fc.property(fc.oneof(name, reference), (text) => {
      expect(orNull(() => parseTaskName(text))).toBe(isName(text) ? text : null);
    }),
  );
});

test("SPN-1 a reference is taken exactly when the grammar has it, and names what it says", () => {
  fc.assert(
    fc.property(path, fc.oneof(reference, path), (caller, text) => {
      const absolute = text.startsWith("/");
      const names = (absolute ? text.slice(1) : text).split("/");
      if (absolute && names.shift() !== "root") names.push("");
      const base = absolute ? ROOT_PATH : caller;
      const expected =
        names.every(isName) && (absolute || names.length > 0) ? names.reduce(childPath, base) : null;
      expect(orNull(() => resolveReference(caller, text))).toBe(expected);
    }),
  );
});

test("SPN-1 a relative reference never leaves the tree of its caller", () => {
  fc.assert(
    fc.property(path, reference, (caller, text) => {
      const found = text.startsWith("/") ? null : orNull(() => resolveReference(caller, text));
      if (found !== null) expect(isWithin(found, caller) && found !== caller).toBe(true);
    }),
  );
});

test("SPN-1 child and parent are each other's way back, and both are what they are called", () => {
  fc.assert(
    fc.property(path, name, path, (parent, last, other) => {
      const child = childPath(parent, last);
      expect(parentPath(child)).toBe(parent);
      expect(depthOf(child)).toBe(depthOf(parent) + 1);
      expect(isWithin(child, parent)).toBe(true);
      expect(isWithin(parent, child)).toBe(false);
      expect(branchOf(child)).toBe(parent === ROOT_PATH ? child : branchOf(parent));
      expect(resolveReference(other, child)).toBe(child);
      expect(resolveReference(parent, last)).toBe(child);
      // A name that begins like another is not below it.
      expect(isWithin(`${child}x`, child)).toBe(false);
    }),
  );
});
