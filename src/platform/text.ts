/** Text limits count bytes of UTF-8; text that is not well-formed UTF-16 is refused before it reaches a store. */
import { RejectedError } from "../protocol/errors.ts";

export function byteLength(text: string): number {
  return Buffer.byteLength(text, "utf8");
}

/** @throws RejectedError `INVALID_ARGUMENT` for lone surrogates and for text over the limit. */
export function requireText(
  argument: string,
  text: string,
  maximumBytes: number,
  instead = "send less, or a reference to a file",
): string {
  if (!text.isWellFormed()) {
    throw new RejectedError("INVALID_ARGUMENT", `${argument} is not well-formed Unicode; send valid text.`, {
      argument,
    });
  }
  const bytes = byteLength(text);
  if (bytes > maximumBytes) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `${argument} has ${bytes} bytes and at most ${maximumBytes} are taken; ${instead}.`,
      { argument, bytes, limit: maximumBytes },
    );
  }
  return text;
}

/** The longest prefix of at most `bytes` bytes that ends between two characters. */
export function headBytes(text: string, bytes: number): string {
  if (byteLength(text) <= bytes) return text;
  const buffer = Buffer.from(text, "utf8");
  let end = bytes;
  while (end > 0 && (buffer[end]! & 0xc0) === 0x80) end -= 1;
  return buffer.toString("utf8", 0, end);
}

/** The longest suffix of at most `bytes` bytes that starts between two characters. */
export function tailBytes(text: string, bytes: number): string {
  if (byteLength(text) <= bytes) return text;
  const buffer = Buffer.from(text, "utf8");
  let start = buffer.length - bytes;
  while (start < buffer.length && (buffer[start]! & 0xc0) === 0x80) start += 1;
  return buffer.toString("utf8", start);
}
