/** Holds the list of events to the sources: what is declared is emitted somewhere. */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { EVENT_TYPES } from "../../src/protocol/events.ts";
import { readSources } from "./scanner.ts";

test("OBS-1 every type of event has a place that emits it", () => {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const text = ["control", "store", "session", "runtime", "threads"]
    .flatMap((folder) => readSources(root, `src/${folder}`))
    .map((source) => source.text)
    .join("\n");
  const emitted = (type: string): boolean =>
    text.includes(`"${type}"`) || text.includes(`\`${type.slice(0, type.indexOf("."))}.\${`);
  expect(EVENT_TYPES.filter((type) => !emitted(type))).toEqual([]);
});
