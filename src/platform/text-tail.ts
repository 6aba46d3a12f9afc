/** The end of a text that may be of any length. */
export class TextTail {
  readonly #bytes: number;
  #kept: Buffer = Buffer.alloc(0);

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  add(chunk: Uint8Array): void {
    const both = Buffer.concat([this.#kept, chunk.subarray(-this.#bytes)]);
    this.#kept = both.subarray(-this.#bytes);
  }

  /** What cannot be read as UTF-8 is replaced, and so is a character that was cut. */
  text(): string {
    return this.#kept.toString("utf8");
  }
}
