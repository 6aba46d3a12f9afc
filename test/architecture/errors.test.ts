/**
 * No code of the list of errors is only compared with, and what threads raise is expected by a test on every surface that can
 * show it. That a code is thrown where it should be, and that a test runs into it, the tests themselves say.
 */
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { ERROR_CODES } from "../../src/protocol/errors.ts";
import { readSources, stringsOf, type Text } from "./scanner.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Strings of these roles in these folders. */
const namedIn = (
  folders: readonly string[],
  roles: readonly Text["role"][],
  besides: readonly string[] = [],
): ReadonlySet<string> =>
  new Set(
    folders
      .flatMap((folder) => readSources(root, folder))
      .filter(({ path }) => !besides.includes(path))
      .flatMap(stringsOf)
      .filter(({ role }) => roles.includes(role))
      .map(({ value }) => value),
  );

/** As a test expects one: `code: "X"`, a row of a table of cases, or given to a matcher. */
const EXPECTED = ["code", "row", "argument"] as const;

/** Codes of threads that no caller is given. */
const CAUGHT_WITHIN: Readonly<Record<string, string>> = {
  HANDOFF_GENERATION_FAILED: "the deterministic summary stands in, and its text names the code",
};

/** Codes of threads which no command of the line can lead to. */
const NOT_ON_THE_LINE: Readonly<Record<string, string>> = {
  THREAD_EXISTS: "no command names the id of a new thread",
  ROLLBACK_PROVIDER_CHANGED: "`thread rollback` is not bound to a provider that was seen before",
  HANDOFF_GENERATION_FAILED: "the deterministic summary stands in, and the handoff's record says so",
  PROVIDER_WRITER_BUSY: "tried again for longer than a test of the line is to take",
  AUTHORITY_ESCALATION_DENIED: "agents alone are refused by it",
  SUBAGENT_PARENT_NOT_ACTIVE: "agents alone are refused by it",
};

/** Of lineage C19, as far as this runtime has them: docs/decisions/0009. */
const OF_THREADS = ERROR_CODES.filter((code) =>
  /^(THREAD|LINEAGE|COMMAND_ID|SOURCE_POINT|FORK|TRANSFER|CONTEXT|HANDOFF|MERGE_BACK|PROVIDER_(UNAVAILABLE|CAPABILITY_MISSING|RESUME_FAILED|WRITER_BUSY)|ROLLBACK|REQUEST_NOT|SUBAGENT|AUTHORITY)/.test(
    code,
  ),
);

describe("the list of errors", () => {
  const sources = namedIn(
    ["src"],
    ["code", "row", "argument", "other"],
    ["src/protocol/errors.ts", "src/cli/failure.ts"],
  );
  test.for(ERROR_CODES)("%s is named by the code, and not only to be compared with", (code) => {
    expect(sources).toContain(code);
  });

  const library = namedIn(["test/contract", "test/unit", "test/workspaces-long"], EXPECTED, [
    "test/contract/errors.test.ts",
  ]);
  const line = namedIn(["test/surfaces", "test/surfaces-long"], EXPECTED);
  test.for(OF_THREADS)(
    "%s is expected by a test of the library, and by one of the command line where that can be",
    (code) => {
      expect(library.has(code)).toBe(!Object.hasOwn(CAUGHT_WITHIN, code));
      expect(line.has(code)).toBe(!Object.hasOwn(NOT_ON_THE_LINE, code));
    },
  );
});
