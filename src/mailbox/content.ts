/**
 * The content of mail (MBX-9): a payload whole, or, above a size, its head and tail with the whole stored as an artifact.
 * Pure; storing the artifact in the same commit is the caller's.
 *
 * - C1 The text of a content never has more bytes than `inlineBytes`, whatever head and tail would allow.
 * - C2 Head and tail end between two characters, and a line between them says how much is left out.
 */
import { sha256 } from "../platform/digest.ts";
import { byteLength, headBytes, tailBytes } from "../platform/text.ts";
import type { ArtifactId } from "../protocol/ids.ts";
import type { MailContent } from "../protocol/mail.ts";

export interface ContentOptions {
  /** Called at most once. */
  readonly artifactId: () => ArtifactId;
  /** A payload above it becomes an artifact. */
  readonly inlineBytes: number;
  readonly headBytes: number;
  readonly tailBytes: number;
}

export interface BuiltContent {
  readonly content: MailContent;
  /** To be stored with the mail; null when the payload is whole. */
  readonly artifact: {
    readonly id: ArtifactId;
    readonly bytes: number;
    readonly digest: string;
    readonly text: string;
  } | null;
}

/** What header lines of ordinary paths need at most. */
const HEADER_BYTES = 1024;

export function buildContent(text: string, options: ContentOptions): BuiltContent {
  const bytes = byteLength(text);
  if (bytes <= options.inlineBytes) return { content: { text, bytes, artifact: null }, artifact: null };
  const id = options.artifactId();
  const digest = sha256(text);
  const stub = shorten(text, bytes, options);
  return {
    content: { text: stub, bytes: byteLength(stub), artifact: { id, bytes, digest } },
    artifact: { id, bytes, digest, text },
  };
}

/** The `inlineBytes` of a result that finds no other room than its reservation, header included (MBX-8). */
export function boundToReservation(reservationBytes: number, headerBytes = HEADER_BYTES): number {
  return Math.max(0, reservationBytes - headerBytes);
}

function shorten(text: string, bytes: number, options: ContentOptions): string {
  const gap = (left: number): string => `\n[${left} bytes left out]\n`;
  const room = options.inlineBytes - byteLength(gap(bytes));
  if (room <= 0) return headBytes(text, Math.max(0, options.inlineBytes));
  const asked = options.headBytes + options.tailBytes;
  const share = Math.min(1, room / asked);
  const head = headBytes(text, Math.floor(options.headBytes * share));
  const tail = tailBytes(text, Math.floor(options.tailBytes * share));
  return `${head}${gap(bytes - byteLength(head) - byteLength(tail))}${tail}`;
}
