/** Numbers of threads, transfers and snapshots (lineage C18), in one place. Those of C18.5 are the store's lease (`limits.ts`). */
import { z } from "zod";

const count = z.number().int().min(0);
const size = z.number().int().min(1);

export const lineageLimitsSchema = z.strictObject({
  snapshotBytes: z
    .number()
    .int()
    .min(1024)
    .max(32_768)
    .default(32_768)
    .describe("a snapshot's canonical JSON, its digest included; hard (C18.1)"),
  outcomesKept: count.default(3).describe("outcome lines that a cut leaves (C18.2)"),
  reservationTtlMs: count
    .default(120_000)
    .describe("age of a run that nobody drives before it is settled as interrupted (C18.4)"),
  historyTextBytes: size.default(16_384).describe("text of a history entry (C18.6)"),
  historySummaryBytes: size.default(512).describe("summary of a tool call in the history (C18.6)"),
  historyTailBytes: size.default(2048).describe("end of a tool's result in the history (C18.6)"),
  seedChars: size.default(120_000).describe("a replay seed, its frame included; 1,024 to 200,000 (C18.7)"),
  seedMessages: size.default(500).describe("messages looked at for a seed; 50 to 500 (C18.8)"),
  messageChars: count.default(0).describe("characters kept of one message in a seed; 0 keeps all (C18.8)"),
  ancestorDepth: size.max(25).default(10).describe("ancestors whose text goes into a seed (C18.10)"),
  ancestorDepthMaximum: size
    .max(25)
    .default(25)
    .describe("ancestors that a transcript shows; a fork that would have more is refused (C18.10)"),
  handoffTokens: size.default(16_000).describe("a handoff; 1,024 to 64,000 (C18.11)"),
  handoffBytes: size.default(64_000).describe("a handoff (C18.11)"),
  windowReserveTokens: count.default(16_000).describe("room of the window that no handoff takes (C18.11)"),
  windowReserveShare: z
    .number()
    .min(0)
    .max(1)
    .default(0.25)
    .describe("the same as a share; the larger one holds"),
  imageTokens: count.default(8192).describe("an attached image (C18.11)"),
  attachmentTokens: count.default(4096).describe("any other attachment (C18.11)"),
  offProviderRuns: count.default(20).describe("runs elsewhere before a provider thread is stale (C18.16)"),
  handoffsSoft: count
    .default(3)
    .describe("handoffs in one provider thread before it gets the whole (C18.16)"),
  handoffsHard: count.default(6).describe("handoffs in one provider thread before it is stale (C18.16)"),
  gapRangesSoft: count.default(4).describe("ranges of a gap before it gets the whole (C18.16)"),
  replay: z.boolean().default(true).describe("whether forks may be told by text (C5.15)"),
  workspaceMs: size.default(60_000).describe("one capture of a workspace, or one step with a worktree"),
  summaryMs: size
    .default(30_000)
    .describe("a summary of dialogue, before the deterministic one is taken (C6.6)"),
  providerCallMs: size
    .default(120_000)
    .describe(
      "an answer of a provider that owns its loop, to anything but a turn or a fork; these have no time of their own (C18.17)",
    ),
  diffChars: count.default(4000).describe("a file's diff before it becomes a line (C18.18)"),
});

export type LineageLimits = z.output<typeof lineageLimitsSchema>;
export type LineageLimitsInput = z.input<typeof lineageLimitsSchema>;
export const DEFAULT_LINEAGE_LIMITS: LineageLimits = lineageLimitsSchema.parse({});

/** Texts of people (C18.3, C18.13, C18.15). */
export const TITLE_CHARACTERS = 200;

/** Least and most of what a user may set; anything beyond is raised or lowered to it (C18.7, C18.8, C18.11). */
export const LINEAGE_BOUNDS = {
  seedChars: [1024, 200_000],
  seedMessages: [50, 500],
  recentMessages: [1, 500],
  messageChars: [1, 50_000],
  handoffTokens: [1024, 64_000],
} as const satisfies Readonly<Record<string, readonly [least: number, most: number]>>;
