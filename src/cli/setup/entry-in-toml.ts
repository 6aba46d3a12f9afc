/**
 * One table in a file of TOML: all else of the text stays as it is, comments too. No library writes into a text that it keeps, so
 * the lines of the table are found by its headers, and what came of it is read again: a file in which the entry stands in another
 * form is left to its owner.
 */
import { isDeepStrictEqual } from "node:util";
import { parse, stringify } from "smol-toml";
import type { JsonObject } from "../../protocol/json.ts";

/** @throws Error for text that is no TOML. */
export function readToml(text: string): JsonObject {
  return parse(text) as JsonObject;
}

/**
 * The text with a table at a path of two names, or without it where there is none.
 * @throws SyntaxError where that cannot be done without touching something else.
 */
export function writeToml(text: string, path: readonly string[], value: JsonObject | undefined): string {
  const before = readToml(text);
  const lines = withoutTable(text.split("\n"), path);
  const rest = lines.join("\n");
  const edited =
    value === undefined
      ? rest
      : `${rest.trimEnd()}${rest.trim() === "" ? "" : "\n\n"}${stringify(nested(path, value))}`;
  if (!isDeepStrictEqual(pruned(readToml(edited), path), pruned(withEntry(before, path, value), path)))
    throw new SyntaxError(`${path.join(".")} stands there in a form that cannot be changed from here`);
  return edited;
}

/** Without the lines from a header of the table, or of one below it, up to the next header. */
function withoutTable(lines: readonly string[], path: readonly string[]): string[] {
  const name = path.map((part) => `\\s*(?:${part}|"${part}"|'${part}')\\s*`).join("\\.");
  const ours = new RegExp(`^\\s*\\[${name}(?:\\.[^\\]]*)?\\]\\s*(?:#.*)?$`, "u");
  const header = /^\s*\[.*\]\s*(?:#.*)?$/u;
  const kept: string[] = [];
  /** What stands below the last line of the table belongs to what follows. */
  let below: string[] = [];
  let within = false;
  for (const line of lines) {
    if (header.test(line)) within = ours.test(line);
    if (within) below = /^\s*(?:#.*)?$/u.test(line) ? [...below, line] : [];
    else kept.push(...below.splice(0), line);
  }
  return [...kept, ...below];
}

function withEntry(
  document: JsonObject,
  [table, name]: readonly string[],
  value: JsonObject | undefined,
): JsonObject {
  const { [name!]: _, ...others } = (document[table!] ?? {}) as JsonObject;
  return { ...document, [table!]: value === undefined ? others : { ...others, [name!]: value } };
}

/** In plain values, and without the table of the entries where that is empty. */
function pruned(document: JsonObject, [table]: readonly string[]): unknown {
  const { [table!]: entries = {}, ...rest } = document;
  const whole = Object.keys(entries as JsonObject).length === 0 ? rest : document;
  return JSON.parse(JSON.stringify(whole));
}

function nested([table, name]: readonly string[], value: JsonObject): JsonObject {
  return { [table!]: { [name!]: value } };
}
