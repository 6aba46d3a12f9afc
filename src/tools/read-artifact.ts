/** `read_artifact`: the whole of what a message, a result or a tool's output only holds head and tail of (MBX-9). */
import { z } from "zod";
import { artifactIdSchema } from "../protocol/ids.ts";
import { RejectedError } from "../protocol/errors.ts";
import { type BuiltIn, builtIn, result } from "./built-in.ts";

const READ_BYTES = 16 * 1024;
const MOST_BYTES = 64 * 1024;
/** Room for one character at least, so that reading always gets on. */
const LEAST_BYTES = 16;

const input = z.strictObject({
  id: z.string().describe("The reference, such as `art_…`."),
  offset: z.number().int().min(0).optional().describe("Byte to begin at: 0 (default) or a `next_offset`."),
  max_bytes: z
    .number()
    .int()
    .min(LEAST_BYTES)
    .max(MOST_BYTES)
    .optional()
    .describe(`How much at most; default ${READ_BYTES}.`),
});

const description = `Reads a part of a long text that was left out of a message, a result or a tool's output, by the reference that stands there.
Use it when the shown head and tail are not enough. \`next_offset\` is where to go on; it is null at the end.`;

export function readArtifact(): BuiltIn {
  return builtIn({
    name: "read_artifact",
    title: "Read a long text",
    description,
    input,
    hints: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
    async run(asked, { control, caller }) {
      const id = artifactIdSchema.safeParse(asked.id);
      if (!id.success) {
        throw new RejectedError(
          "INVALID_ARGUMENT",
          "id is no reference of an artifact; use one from a message.",
          { argument: "id" },
        );
      }
      const offset = asked.offset ?? 0;
      const part = await control.readArtifact(
        caller.threadId,
        id.data,
        offset,
        asked.max_bytes ?? READ_BYTES,
      );
      return result({ id: id.data, bytes: part.bytes, offset, text: part.text, next_offset: part.next });
    },
  });
}
