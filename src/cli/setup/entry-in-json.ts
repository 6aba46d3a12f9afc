/** One entry in a file of JSON, with or without comments: all else of the text stays as it is. */
import { applyEdits, modify, parse, type ParseError, printParseErrorCode } from "jsonc-parser";
import type { Json } from "../../protocol/json.ts";

/** @throws SyntaxError for text that is no object of JSON. */
export function readJson(text: string): Json {
  if (text.trim() === "") return {};
  const errors: ParseError[] = [];
  const value = parse(text, errors, { allowTrailingComma: true }) as Json;
  const [first] = errors;
  if (first !== undefined) {
    const line = text.slice(0, first.offset).split("\n").length;
    throw new SyntaxError(`line ${line}: ${printParseErrorCode(first.error)}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new SyntaxError("line 1: it is no object");
  return value;
}

/** The text with the value at a path, or without it where there is none. */
export function writeJson(text: string, path: readonly string[], value: Json | undefined): string {
  const whole = text.trim() === "" ? "{}\n" : text;
  const edited = applyEdits(whole, modify(whole, [...path], value, { formattingOptions: formatOf(whole) }));
  // A file that was there may have had nothing at its end.
  return text === "" && !edited.endsWith("\n") ? `${edited}\n` : edited;
}

/** As the first line that is indented. */
function formatOf(text: string) {
  const [, indent = "  "] = /\n([ \t]+)\S/.exec(text) ?? [];
  const insertSpaces = !indent.startsWith("\t");
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  return { insertSpaces, tabSize: insertSpaces ? indent.length : 1, eol };
}

/** Whether nothing is left that somebody has written. */
export function isEmptyJson(text: string): boolean {
  const isEmpty = (value: Json): boolean =>
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).every(isEmpty);
  return !/\/[/*]/.test(text) && isEmpty(readJson(text));
}
