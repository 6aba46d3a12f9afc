/** The list of errors holds nothing that nobody raises, and what threads raise is met by a test on every surface that can. */
import { globSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ERROR_CODES } from "../../src/protocol/errors.ts";

const textOf = (pattern: string, besides: readonly string[] = []): string =>
  globSync(pattern)
    .filter((file) => !besides.includes(file))
    .map((file) => readFileSync(file, "utf8"))
    .join("\n");

const isNamed = (text: string, code: string): boolean =>
  text.includes(`"${code}"`) || text.includes(` ${code} `);

/** Codes of threads which no command of the line can lead to. */
const NOT_ON_THE_LINE: Readonly<Record<string, string>> = {
  THREAD_EXISTS: "no command names the id of a new thread",
  LINEAGE_CYCLE: "no command names the parent of a new thread",
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
  const sources = textOf("src/**/*.ts", ["src/protocol/errors.ts", "src/cli/failure.ts"]);
  test.for(ERROR_CODES)("%s is raised somewhere", (code) => {
    expect(sources).toContain(`"${code}"`);
  });

  const library = textOf("test/{contract,unit}/**/*.test.ts", ["test/contract/errors.test.ts"]);
  const line = textOf("test/surfaces*/**/*.test.ts");
  test.for(OF_THREADS)("%s is met through the library, and on the command line where that can be", (code) => {
    expect(isNamed(library, code)).toBe(true);
    expect(isNamed(line, code)).toBe(!Object.hasOwn(NOT_ON_THE_LINE, code));
  });
});
