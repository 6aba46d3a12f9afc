/**
 * What a host's tool has answered, as text: written once, and cut before anybody reads it back, since both take a second for
 * a million values.
 */

/** A text as it is, or all else as JSON. */
export interface ToolAnswer {
  readonly text: string;
  readonly isText: boolean;
}

/**
 * Nothing becomes null, and so does what JSON has no form for.
 * @throws what reading the value throws, and TypeError for what JSON cannot hold.
 */
export function answerOf(value: unknown): ToolAnswer {
  if (typeof value === "string") return { text: value, isText: true };
  const replacer = holdsBytes(value) ? describeBytes : undefined;
  return { text: (JSON.stringify(value, replacer) as string | undefined) ?? "null", isText: false };
}

/** So many values are looked at, those on top first: bytes stand there, and the values of a table need no second walk. */
const LOOKED_AT = 1_000;

function holdsBytes(value: unknown): boolean {
  const found = [value];
  for (let at = 0; at < Math.min(found.length, LOOKED_AT); at += 1) {
    const one = found[at];
    if (bytesIn(one) !== null) return true;
    if (Array.isArray(one)) found.push(...one.slice(0, LOOKED_AT));
    else if (typeof one === "object" && one !== null) {
      for (const name in one) {
        if (found.length >= LOOKED_AT) break;
        found.push((one as Record<string, unknown>)[name]);
      }
    }
  }
  return false;
}

/** JSON would write a name and a number for each byte, which no model can read and which takes seconds. */
function describeBytes(this: unknown, name: string, value: unknown): unknown {
  // A buffer has been turned into a list by now.
  const given = (this as Record<string, unknown>)[name];
  const bytes = bytesIn(given);
  return bytes === null ? value : `(${bytes} bytes, not shown: answer with text, or the name of a file)`;
}

function bytesIn(value: unknown): number | null {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer || value instanceof SharedArrayBuffer)
    return value.byteLength;
  return value instanceof Blob ? value.size : null;
}
