/**
 * Whether a fork can be taken natively and by replay at a point, and the place that a provider is told (lineage C5.11,
 * C5.12, C5.18, C20.7). Asks nobody: what a provider can do is data, what lies at the point is passed in.
 *
 * - L1 One point, one boundary. It names the end of a turn wherever that turn has a name, for a head moves on; the head
 *   is named where turns cannot be, the inside of a turn by its item only.
 *   A run ends with its last turn, named or not; where that has no name, no earlier turn stands in for it.
 * - L2 A turn that a native rollback has taken away has no reference any more; such a point is replayed (C9.9).
 */
import type { NativeTurn } from "../protocol/native-events.ts";
import type { Boundary, ThreadCapabilities } from "../protocol/provider-capabilities.ts";
import { without } from "../protocol/ordinals.ts";
import type { NativeRef, ProviderThreadRecord } from "../protocol/provider-thread.ts";
import { lastOrdinal } from "./coverage.ts";
import { countsAll } from "./native-turns.ts";

/** The provider thread that the run at the point went through. */
export interface ForkSource extends Pick<
  ProviderThreadRecord,
  "instanceId" | "driver" | "nativeThreadRef" | "nativeRunOrdinals"
> {
  /** Its turns from the point on. */
  readonly turns: readonly NativeTurn[];
  /** Conversation of a provider's own subagent. */
  readonly ofChild: boolean;
  /** A turn is under way in it. */
  readonly busy: boolean;
}

/** What lies at a point of a thread. */
export interface ForkPointFacts {
  /** Null where no provider's conversation is behind the point. */
  readonly source: ForkSource | null;
  /** The last run inside, wholly or in part. */
  readonly ordinal: number;
  /** The point is the end of that run. */
  readonly wholeRun: boolean;
  /** Native reference of the item that was named; null as long as items are stored without one: a turn is not its items. */
  readonly item: NativeRef | null;
  readonly cut: "inclusive" | "exclusive";
  /** False for a cut before the first message: there is nothing to carry (C5.10). */
  readonly carries: boolean;
}

export interface ForkSettings {
  /** Whether replay is allowed. */
  readonly replay: boolean;
  /** Where the fork is to run; null while nobody has chosen, which is the source's own provider. */
  readonly target: Pick<ProviderThreadRecord, "instanceId" | "driver"> | null;
}

/** Why a provider could not fork its own conversation. */
export type NativeObstacle =
  | "nothing_to_carry"
  | "no_native_thread"
  | "other_provider"
  | "no_fork"
  | "no_fork_of_child"
  | "weak_thread_ref"
  | "turn_unknown"
  | "point_inside_turn"
  | "point_before_head"
  | "source_busy";

/** Each of them in words that follow a colon. */
export const NATIVE_OBSTACLES: Readonly<Record<NativeObstacle, string>> = {
  nothing_to_carry: "nothing lies before the point",
  no_native_thread: "no conversation of a provider is behind the point",
  other_provider: "the source ran on another provider",
  no_fork: "the provider cannot fork",
  no_fork_of_child: "the provider cannot fork the conversation of its own subagent",
  weak_thread_ref: "the provider's name for the conversation does not hold",
  turn_unknown: "the provider's turn at the point is not known any more",
  point_inside_turn: "the provider cannot fork inside a turn",
  point_before_head: "the provider can fork the end of its conversation only",
  source_busy: "the source is at work in the provider",
};
/** Why a fork could not be given its context as text. */
export type ReplayObstacle = "replay_disabled" | "nothing_to_carry";

/** Which ways of forking there are at a point: true, or what stands in the way. */
export interface ForkAvailability {
  readonly native: true | NativeObstacle;
  readonly replay: true | ReplayObstacle;
}

/** Which strategies a point allows; the first obstacle where one does not. */
export function forkAvailability(
  capabilities: ThreadCapabilities,
  point: ForkPointFacts,
  settings: ForkSettings,
): ForkAvailability {
  const native = nativeFork(capabilities, point, settings);
  return {
    native: typeof native === "string" ? native : true,
    replay: !point.carries ? "nothing_to_carry" : settings.replay || "replay_disabled",
  };
}

/** Where to fork the source's conversation, or what stands against it. */
export function nativeFork(
  capabilities: ThreadCapabilities,
  point: ForkPointFacts,
  { target }: ForkSettings,
): { readonly sourceRef: NativeRef; readonly boundary: Boundary } | NativeObstacle {
  const { source } = point;
  if (!point.carries) return "nothing_to_carry";
  if (source === null || source.nativeThreadRef === null) return "no_native_thread";
  const elsewhere =
    target !== null && (target.instanceId !== source.instanceId || target.driver !== source.driver);
  if (elsewhere) return "other_provider";
  if (capabilities.threads.fork === "none") return "no_fork";
  if (source.ofChild && !capabilities.threads.forkFromChild) return "no_fork_of_child";
  if (source.nativeThreadRef.strength !== "strong") return "weak_thread_ref";
  if (source.busy && capabilities.threads.forkIdleOnly) return "source_busy";
  const boundary = forkBoundary(capabilities, point, source);
  if (typeof boundary === "string") return boundary;
  // The head of a conversation at work is a turn that is not over.
  if (source.busy && boundary.kind === "head") return "source_busy";
  return { sourceRef: source.nativeThreadRef, boundary };
}

function forkBoundary(
  { threads }: ThreadCapabilities,
  point: ForkPointFacts,
  source: ForkSource,
): Boundary | NativeObstacle {
  if (!point.wholeRun) {
    if (threads.fork !== "item" || point.item === null || point.item.strength === "none") {
      return "point_inside_turn";
    }
    return { kind: point.cut === "exclusive" ? "before_item" : "after_item", item: point.item };
  }
  const isHead = lastOrdinal(source.nativeRunOrdinals) === point.ordinal;
  if (threads.fork === "head") return isHead ? { kind: "head" } : "point_before_head";
  const turn = source.turns.findLast(({ ordinal }) => ordinal === point.ordinal)?.ref ?? null;
  if (turn === null) return isHead ? { kind: "head" } : "turn_unknown";
  // Without a name that holds, a head is still exact, and an earlier turn is found by counting back from it.
  if (isHead && turn.strength === "none") return { kind: "head" };
  const later = source.turns.filter(({ ordinal }) => ordinal > point.ordinal);
  const counted = countsAll(later, without(source.nativeRunOrdinals, [[1, point.ordinal]]));
  if (turn.strength !== "strong" && !counted) return "turn_unknown";
  return { kind: "after_turn", turn, laterTerminalTurns: later.length };
}
