/**
 * Bytes as lines of text, each of a bounded length.
 *
 * - N1 Whatever comes, no more than one line of the longest length allowed is held.
 * - N2 A line is what stands before a line feed: bytes without one at the end are no line.
 */
import { RejectedError, TransientError } from "../protocol/errors.ts";

/**
 * @throws RejectedError `PROVIDER_PROTOCOL` for a line that is too long or is not UTF-8.
 * @throws TransientError `PROVIDER_UNREACHABLE` when the bytes end in the middle of a line.
 */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  maximumBytes: number,
): AsyncGenerator<string, void, undefined> {
  const rest = new Unfinished(maximumBytes);
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, from)) {
      rest.add(chunk.subarray(from, end));
      from = end + 1;
      yield decoded(rest.take());
    }
    rest.add(chunk.subarray(from));
  }
  if (rest.length > 0)
    throw new TransientError("PROVIDER_UNREACHABLE", "the output ended in the middle of a line.", {
      bytes: rest.length,
    });
}

const LINE_FEED = 0x0a;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decoded(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    throw new RejectedError(
      "PROVIDER_PROTOCOL",
      "a line of the output is not UTF-8.",
      { bytes: bytes.length },
      cause,
    );
  }
}

/** The beginning of a line, in one piece, so that a line that comes byte by byte costs no more than another. */
class Unfinished {
  readonly #maximum: number;
  #bytes = new Uint8Array(0);
  length = 0;

  constructor(maximum: number) {
    this.#maximum = maximum;
  }

  add(more: Uint8Array): void {
    const length = this.length + more.length;
    if (length > this.#maximum)
      throw new RejectedError("PROVIDER_PROTOCOL", "a line of the output is too long.", {
        limit: this.#maximum,
      });
    if (length > this.#bytes.length) {
      const wider = new Uint8Array(Math.min(this.#maximum, Math.max(length, 2 * this.#bytes.length)));
      wider.set(this.#bytes.subarray(0, this.length));
      this.#bytes = wider;
    }
    this.#bytes.set(more, this.length);
    this.length = length;
  }

  /** What is there, valid until the next `add`. */
  take(): Uint8Array {
    const whole = this.#bytes.subarray(0, this.length);
    this.length = 0;
    return whole;
  }
}
