/** What each of the six can do, as data: what they imitate is another matter (lineage 3.1, 3.3). */
import type { ThreadCapabilities } from "../../../protocol/provider-capabilities.ts";
import type { NativeRef } from "../../../protocol/provider-thread.ts";
import type { Conversation, ConversationTurn } from "./conversations.ts";
import { byFirstGone, byHead, byItem, byTurn, type Translator } from "./translate.ts";

export interface NativeRow {
  readonly driver: string;
  readonly aliases: readonly string[];
  readonly capabilities: ThreadCapabilities;
  readonly history: Conversation["history"];
  readonly translator: Translator;
  /** How the provider names a turn; null as long as it cannot. */
  readonly nameTurn: (conversation: Conversation, turn: ConversationTurn) => string | null;
}

/** An agent client protocol in its plainest form; the others say what they can do beyond it. */
const PLAIN: ThreadCapabilities = {
  threads: {
    fork: "none",
    forkIdleOnly: false,
    rollback: "none",
    rollbackReturnsSnapshot: false,
    read: "none",
    forkFromChild: false,
  },
  identity: { thread: "strong", turn: "weak", item: "weak", request: "weak" },
  turns: { steer: false, interrupt: true, queue: false, acceptedEvent: false, terminalQuality: "strong" },
  sessions: { multipleThreads: false, modelSwitch: false, singleWriter: false },
  context: {
    channels: ["synthetic_user"],
    delta: true,
    full: true,
    canSummarise: false,
    maxRecommendedChars: null,
  },
  subagents: { native: false, childIds: false, lifecycle: false },
  history: { bridge: false, pinnedVersion: null },
  requests: { userQuestions: true, approvals: true, surviveRestart: false },
};

const STEERED = { ...PLAIN.turns, steer: true, acceptedEvent: true };

/** Options of `turnFork` beside those of the six. */
export interface TurnForkOptions {
  /** `paginated` unless given. */
  readonly history?: Conversation["history"];
  /** Whether paginated history can be taken back; true unless given. */
  readonly revert?: boolean;
}

export function turnForkRow({ history = "paginated", revert = true }: TurnForkOptions): NativeRow {
  return {
    driver: "turn-fork",
    aliases: ["turn-fork-early", "tf"],
    history,
    translator: byTurn({ revert }),
    nameTurn: (_conversation, turn) => turn.id,
    capabilities: {
      ...PLAIN,
      threads: {
        fork: "turn",
        forkIdleOnly: false,
        rollback: history === "legacy" ? "count" : "boundary",
        rollbackReturnsSnapshot: true,
        read: "paged",
        forkFromChild: true,
      },
      identity: { thread: "strong", turn: "strong", item: "strong", request: "strong" },
      turns: STEERED,
      sessions: { multipleThreads: true, modelSwitch: true, singleWriter: true },
      context: { ...PLAIN.context, channels: ["system", "developer", "history_items", "synthetic_user"] },
      subagents: { native: true, childIds: true, lifecycle: true },
      history: { bridge: true, pinnedVersion: "1" },
    },
  };
}

export const ITEM_FORK: NativeRow = {
  driver: "item-fork",
  aliases: [],
  history: "legacy",
  translator: byItem,
  nameTurn: ({ items }, { id, status }) =>
    status === "running" ? null : (items.findLast(({ turn }) => turn === id)?.id ?? null),
  capabilities: {
    ...PLAIN,
    threads: {
      ...PLAIN.threads,
      fork: "item",
      forkIdleOnly: true,
      rollback: "boundary",
      rollbackReturnsSnapshot: true,
    },
    identity: { thread: "strong", turn: "weak", item: "strong", request: "strong" },
    turns: STEERED,
    sessions: { ...PLAIN.sessions, modelSwitch: true },
    context: { ...PLAIN.context, channels: ["system", "developer", "synthetic_user"] },
    subagents: { native: true, childIds: false, lifecycle: true },
  },
};

export const EXCLUSIVE_FORK: NativeRow = {
  driver: "exclusive-fork",
  aliases: [],
  history: "legacy",
  translator: byFirstGone,
  nameTurn: ({ items }, { id }) => items.find(({ turn }) => turn === id)?.id ?? null,
  capabilities: {
    ...PLAIN,
    threads: {
      fork: "item",
      forkIdleOnly: false,
      rollback: "boundary",
      rollbackReturnsSnapshot: true,
      read: "full",
      forkFromChild: true,
    },
    identity: { thread: "strong", turn: "weak", item: "strong", request: "strong" },
    turns: STEERED,
    subagents: { native: true, childIds: true, lifecycle: true },
    history: { bridge: true, pinnedVersion: "1" },
  },
};

const byNumber: NativeRow["nameTurn"] = (_conversation, turn) => turn.id;

export const HEAD_FORK: NativeRow = {
  driver: "head-fork",
  aliases: [],
  history: "legacy",
  translator: byHead(true),
  nameTurn: byNumber,
  capabilities: { ...PLAIN, threads: { ...PLAIN.threads, fork: "head" } },
};

export const NO_FORK: NativeRow = {
  driver: "no-fork",
  aliases: [],
  history: "legacy",
  translator: byHead(false),
  nameTurn: byNumber,
  capabilities: PLAIN,
};

export const MUTE: NativeRow = {
  driver: "mute",
  aliases: [],
  history: "legacy",
  translator: byHead(false),
  nameTurn: byNumber,
  capabilities: { ...PLAIN, context: { ...PLAIN.context, channels: [], delta: false, full: false } },
};

export function threadRef(row: NativeRow, { id }: Conversation): NativeRef {
  return { driver: row.driver, nativeId: id, strength: row.capabilities.identity.thread };
}

export function turnRef(
  row: NativeRow,
  conversation: Conversation,
  turn: ConversationTurn,
): NativeRef | null {
  const nativeId = row.nameTurn(conversation, turn);
  const ordinal = conversation.turns.indexOf(turn);
  return nativeId === null
    ? null
    : { driver: row.driver, nativeId, strength: row.capabilities.identity.turn, ordinal };
}
