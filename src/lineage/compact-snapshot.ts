/**
 * Brings a snapshot under its cap, always the same way, and says what was cut (lineage C12.5, C12.6). The cap is hard:
 * when dropping whole lines is not enough, the longest ones are cut short and marked.
 */
import { canonicalJson } from "../platform/canonical-json.ts";
import { sha256 } from "../platform/digest.ts";
import { byteLength, headBytes } from "../platform/text.ts";
import type { RunId } from "../protocol/ids.ts";
import type { LineageLimits } from "../protocol/lineage-limits.ts";
import type { CompactionRecord, SnapshotLine, SnapshotRecord } from "../protocol/snapshot.ts";
import type { ContextReference } from "../protocol/thread.ts";

export interface Projection {
  readonly snapshot: SnapshotRecord;
  readonly compaction: CompactionRecord | null;
}

interface CompactInput {
  /** The run whose lines go last; null where no run is behind it. */
  readonly newest: RunId | null;
  readonly from: ContextReference;
  readonly messages: { readonly from: number; readonly to: number };
  readonly limits: LineageLimits;
}

const SECTIONS = ["openItems", "decisions", "constraints", "outcomes", "delegations", "nextActions"] as const;
type Section = (typeof SECTIONS)[number];
type Draft = Omit<SnapshotRecord, "digest">;

/** A digest is 64 letters and its key: `"digest":"…",`. */
const DIGEST_BYTES = 76;
const MARK = "… [cut]";

export function compact(given: Draft, input: CompactInput): Projection {
  const before = canonicalJson(given);
  let over = byteLength(before) + DIGEST_BYTES - input.limits.snapshotBytes;
  if (over <= 0) return { snapshot: seal(given, before), compaction: null };
  const cut: CompactionRecord["droppedLines"][number][] = [];
  const lines = new Map<Section, SnapshotLine[]>(
    SECTIONS.map((section) => [section, [...(given[section] ?? [])]]),
  );
  const note = (section: Section, line: SnapshotLine, truncated: boolean): void =>
    void cut.push({
      section,
      sourceExecutionId: line.sourceExecutionId,
      digest: sha256(line.text),
      truncated,
    });

  const drop = (section: Section, mayGo: (line: SnapshotLine) => boolean, keep: number): void => {
    const kept: SnapshotLine[] = [];
    const all = lines.get(section)!;
    let left = all.length;
    for (const line of all) {
      if (over > 0 && left > keep && mayGo(line)) {
        // The last of a section has no comma.
        over -= bytesOf(line) + (left > 1 ? 1 : 0);
        left -= 1;
        note(section, line, false);
      } else kept.push(line);
    }
    lines.set(section, kept);
  };

  const older = (line: SnapshotLine): boolean => line.sourceExecutionId !== input.newest;
  for (const mayGo of [older, () => true]) {
    for (const section of SECTIONS) {
      if (section === "nextActions" && mayGo === older) continue;
      drop(section, mayGo, section === "outcomes" ? input.limits.outcomesKept : 0);
    }
  }
  while (
    over > 0 &&
    shortenLongest(
      lines,
      (section, line) => note(section, line, true),
      (saved) => (over -= saved),
    )
  );

  const draft: Draft = {
    ...given,
    ...Object.fromEntries([...lines].filter(([section]) => given[section] !== undefined)),
  };
  const snapshot = seal(draft);
  return {
    snapshot,
    compaction: {
      version: 1,
      id: `compaction-${given.revision}`,
      threadId: given.threadId,
      fromRevision: input.from.revision,
      toRevision: given.revision,
      droppedCount: cut.filter(({ truncated }) => !truncated).length,
      fromMessageSequence: input.messages.from,
      toMessageSequence: input.messages.to,
      inputDigest: sha256(before),
      outputContextRevision: snapshot.revision,
      outputContextDigest: snapshot.digest,
      strategy: "deterministic",
      droppedLines: cut,
      createdAt: given.createdAt,
    },
  };
}

/** Cuts the longest line to half of its text; false when no line can give any more. */
function shortenLongest(
  lines: ReadonlyMap<Section, SnapshotLine[]>,
  cut: (section: Section, line: SnapshotLine) => void,
  save: (bytes: number) => void,
): boolean {
  let longest: { section: Section; at: number; bytes: number } | null = null;
  for (const [section, all] of lines) {
    for (const [at, line] of all.entries()) {
      const bytes = bytesOf(line);
      if (longest === null || bytes > longest.bytes) longest = { section, at, bytes };
    }
  }
  if (longest === null) return false;
  const all = lines.get(longest.section)!;
  const line = all[longest.at]!;
  const text = line.text.endsWith(MARK) ? line.text.slice(0, -MARK.length) : line.text;
  const shorter: SnapshotLine = { ...line, text: headBytes(text, Math.floor(byteLength(text) / 2)) + MARK };
  if (bytesOf(shorter) >= longest.bytes) return false;
  cut(longest.section, line);
  all[longest.at] = shorter;
  save(longest.bytes - bytesOf(shorter));
  return true;
}

function bytesOf(line: SnapshotLine): number {
  return byteLength(canonicalJson(line));
}

/** With its digest, over every other field (C11.8). */
export function seal(draft: Draft, canonical = canonicalJson(draft)): SnapshotRecord {
  return { ...draft, digest: sha256(canonical) };
}
