/** Reading what was too large for a message, piece by piece (MBX-9). */
import { RejectedError } from "../protocol/errors.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import type { ArtifactId } from "../protocol/ids.ts";
import type { Redact } from "../platform/redact.ts";
import type { StoreView } from "../store/port.ts";

export interface ArtifactPart {
  readonly text: string;
  /** Of the whole. */
  readonly bytes: number;
  /** Where the next part begins; null at the end. */
  readonly next: number | null;
}

/**
 * A part of at most so many bytes that splits no letter; without secrets where the words are another provider's agent's,
 * and then `bytes` and offsets are of the text without them (SEC-3).
 * @throws RejectedError `INVALID_ARGUMENT` for an artifact of another tree, or none, and for an offset beyond its end.
 */
export function readArtifact(
  view: StoreView,
  reader: AgentRecord,
  id: ArtifactId,
  { offset, bytes, redact }: { readonly offset: number; readonly bytes: number; readonly redact: Redact },
): ArtifactPart {
  const artifact = view.artifact(id);
  if (artifact === undefined || artifact.treeId !== reader.treeId) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `no artifact ${id} is in this tree; use a reference from a message.`,
      { argument: "id", value: id },
    );
  }
  const foreign = artifact.provider !== null && artifact.provider !== reader.config.provider;
  const whole = Buffer.from(foreign ? redact(artifact.text) : artifact.text, "utf8");
  if (offset > whole.length) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `offset ${offset} is beyond the end; the text has ${whole.length} bytes.`,
      { argument: "offset", value: offset, bytes: whole.length },
    );
  }
  let end = Math.min(whole.length, offset + bytes);
  while (end < whole.length && end > offset && (whole[end]! & 0xc0) === 0x80) end -= 1;
  return {
    text: whole.toString("utf8", offset, end),
    bytes: whole.length,
    next: end < whole.length ? end : null,
  };
}
