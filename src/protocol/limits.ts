/**
 * Limits and their defaults (BUD-6). One table: the README's is generated from it. Zero and `null` (unlimited) are
 * explicit; every other default is finite.
 */
import { z } from "zod";

/** Tokens of a context window that nobody states (lineage C18.11). */
export const ASSUMED_CONTEXT_WINDOW = 128_000;

const KIB = 1024;
const MIB = 1024 * KIB;
const SECOND = 1000;
const HOUR = 3600 * SECOND;

const count = z.number().int().min(0);
const bounded = count.nullable();
const size = z.number().int().min(1);

export const limitsSchema = z.strictObject({
  depth: bounded.default(5).describe("levels below the root"),
  agentsPerTree: bounded.default(200).describe("agents a tree, the root not counted"),
  directChildren: bounded.default(32).describe("children of one agent that are open"),
  spawnsPerMinute: bounded.default(60).describe("spawns a minute, per tree"),
  runsPerMinute: bounded.default(240).describe("runs started a minute, per tree"),
  running: bounded.default(4).describe("running children, per tree (`codex`: 3)"),
  runningTotal: size.nullable().default(64).describe("running children, per runtime"),
  residents: size.default(64).describe("loaded sessions, per runtime"),
  queue: bounded.default(256).describe("agents waiting for a permit, per tree"),
  stepsPerRun: bounded.default(100).describe("model requests a run"),
  runWallClockMs: bounded.default(HOUR).describe("wall clock of a run, waits not counted"),
  wrapUpMs: count.default(60 * SECOND).describe("time for the wrap-up step once a run's wall clock is over"),
  treeWallClockMs: bounded
    .default(24 * HOUR)
    .describe("how long the work of a tree may go on without coming to rest"),
  tokensPerTree: bounded.default(20_000_000).describe("tokens a tree"),
  moneyPerTree: z.number().min(0).nullable().default(50).describe("USD a tree, where prices are known"),
  interruptGraceMs: count
    .default(5 * SECOND)
    .describe("grace after an interrupt before a provider is cut off"),
  hostGraceMs: count
    .default(30 * SECOND)
    .describe("grace after a host's last connection closed, with `onHostGone: interrupt`"),
  closeDeadlineMs: count.default(30 * SECOND).describe("deadline of a close before force"),
  mailboxMessages: size
    .default(1000)
    .describe("unread messages a mailbox; one more that starts the run of an idle agent"),
  mailboxBytes: size.default(4 * MIB).describe("unread bytes a mailbox"),
  mailInlineBytes: size.default(64 * KIB).describe("payload above which mail becomes an artifact"),
  artifactHeadBytes: size.default(4 * KIB).describe("head of an artifact kept in the mail"),
  artifactTailBytes: size.default(2 * KIB).describe("tail of an artifact kept in the mail"),
  resultReservationBytes: size
    .default(8 * KIB)
    .describe("room an open work reserves in the mailbox of its `replyTo`"),
  mailPerRequestBytes: size
    .nullable()
    .default(null)
    .describe("mail a request (default a quarter of the context window)"),
  messageBytes: size.default(16 * MIB).describe("largest message that is taken at all"),
  retries: count.default(4).describe("retries of a provider request"),
  schemaRepairs: count.default(1).describe("repair attempts for a declared output schema"),
  causalChain: size.default(64).describe("length of a chain of parent works"),
  runsPerWork: size.default(64).describe("runs that may serve one work"),
  waitDefaultMs: count.default(30 * SECOND).describe("`wait_agent` without a time-out"),
  waitMinimumMs: count.default(10 * SECOND).describe("shortest `wait_agent`, shorter is raised to it"),
  waitMaximumMs: count.default(HOUR).describe("longest `wait_agent`"),
  transportWaitMs: size.default(45 * SECOND).describe("longest wait through a transport with a short limit"),
  leaseMs: size.default(10 * SECOND).describe("lease on a tree"),
  leaseRenewMs: size.default(2 * SECOND).describe("renewal of the lease"),
  leaseGiveUpMs: size
    .default(6 * SECOND)
    .describe("an owner without a renewal for this long stops by itself"),
  pollMs: size.default(100).describe("how often an owner looks for mail and commands of other processes"),
});

/** Every limit with its value; the table of the README. */
export type Limits = z.output<typeof limitsSchema>;
/** Limits, of which any may be left out. */
export type LimitsInput = z.input<typeof limitsSchema>;
/** The limits that hold where none are given; the table of the README. */
export const DEFAULT_LIMITS: Limits = limitsSchema.parse({});

/** Budgets of a subtree: the agent that carries them and everything below it (BUD-1). */
export const budgetsSchema = z.strictObject({
  tokens: z.number().int().min(0).nullable().optional(),
  money: z.number().min(0).nullable().optional(),
  wallClockMs: z.number().int().min(0).nullable().optional(),
  depth: z.number().int().min(0).nullable().optional(),
  directChildren: z.number().int().min(0).nullable().optional(),
  agents: z.number().int().min(0).nullable().optional(),
  running: z.number().int().min(0).nullable().optional(),
  spawnsPerMinute: z.number().int().min(0).nullable().optional(),
});
/** Budgets of an agent and everything below it; null is unlimited. */
export type Budgets = z.output<typeof budgetsSchema>;
