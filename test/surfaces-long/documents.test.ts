/** Holds docs/threads.md to the program: its commands in their order, in a folder of their own, and what each prints. */
import { mkdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { Place } from "../support/cli.ts";

const place = new Place();
afterAll(() => place[Symbol.dispose]());

const page = readFileSync(fileURLToPath(new URL("../../docs/threads.md", import.meta.url)), "utf8");
const PROMPT = "$ npx coppice ";
/** In the order in which the page makes them. */
const NAMES = ["thread_…P", "thread_…F"];

test("what docs/threads.md says that its commands print is what they print, in their order", async () => {
  // As the page has it, whatever folders lie above.
  const folder = join(realpathSync(place.path), "parser");
  mkdirSync(folder);
  const ids: string[] = [];
  const shown = (text: string): string =>
    measured(
      ids.reduce((all, id, at) => all.replaceAll(id, NAMES[at]!), text).replaceAll(folder, "/tmp/parser"),
    );

  const blocks = [...page.matchAll(/^```\n(\$ .*?)^```$/gms)].map(([, block]) => block!);
  const told: string[] = [];
  for (const block of blocks) {
    const printed: string[] = [];
    for (const [line] of block.matchAll(/^\$ .*$/gm)) {
      expect(line.slice(0, PROMPT.length)).toBe(PROMPT);
      const named = NAMES.reduce((all, name, at) => all.replaceAll(name, ids[at] ?? name), line);
      const [command, ...args] = wordsOf(named.slice(PROMPT.length));
      const end = args.includes("--") ? args.indexOf("--") : args.length;
      const pace = args[0] === "continue" ? ["--pace", "0"] : [];
      const { code, stdout, stderr } = await place.start(
        [command!, ...args.slice(0, end), ...pace, ...args.slice(end)],
        {},
        "",
        folder,
      ).ended;
      expect({ line, code, stderr }).toEqual({ line, code: 0, stderr: "" });
      for (const [id] of stdout.matchAll(/thread_\w{21}/g)) if (!ids.includes(id)) ids.push(id);
      printed.push(`${line}\n${shown(stdout)}`);
    }
    told.push(printed.join("\n"));
  }
  expect(blocks.length).toBeGreaterThanOrEqual(5);
  expect(told).toEqual(blocks.map(measured));
}, 300_000);

/** A text that was handed over names the folder, and is longer where that is. */
function measured(text: string): string {
  return text.replaceAll(/\d+ tokens at most \(\d+ bytes\)/g, "… tokens at most (… bytes)");
}

/** As a shell takes a line apart, as far as the page needs it. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word);
}
