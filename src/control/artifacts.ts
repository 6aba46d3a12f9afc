/** Reading what was too large for a message, piece by piece (MBX-9). */
import { RejectedError } from "../protocol/errors.ts";
import type { ArtifactId, TreeId } from "../protocol/ids.ts";
import type { StoreView } from "../store/port.ts";

export interface ArtifactPart {
  readonly text: string;
  /** Of the whole. */
  readonly bytes: number;
  /** Where the next part begins; null at the end. */
  readonly next: number | null;
}

/**
 * A part of at most so many bytes that splits no letter.
 * @throws RejectedError `INVALID_ARGUMENT` for an artifact of another tree, or none.
 */
export function readArtifact(
  view: StoreView,
  treeId: TreeId,
  id: ArtifactId,
  offset: number,
  bytes: number,
): ArtifactPart {
  const artifact = view.artifact(id);
  if (artifact === undefined || artifact.treeId !== treeId) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `no artifact ${id} is in this tree; use a reference from a message.`,
      { argument: "id", value: id },
    );
  }
  const whole = Buffer.from(artifact.text, "utf8");
  let end = Math.min(whole.length, offset + bytes);
  while (end < whole.length && end > offset && (whole[end]! & 0xc0) === 0x80) end -= 1;
  return {
    text: whole.toString("utf8", offset, end),
    bytes: whole.length,
    next: end < whole.length ? end : null,
  };
}
