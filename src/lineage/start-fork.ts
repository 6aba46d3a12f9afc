/**
 * How the first run of a fork gets what it inherits (lineage C4.4, C5.12 to C5.20). The strategy was chosen when the fork
 * was made, the provider only now.
 *
 * - O1 `native` is strict: the provider's own fork or a refusal, never text instead (C5.13).
 * - O2 `auto` takes the provider's fork where the point allows it, and text where it does not.
 * - O3 A fork whose outcome is not known is not asked for again before it has been looked for (C5.19).
 */
import type { TransferId } from "../protocol/ids.ts";
import type { TransferRecord } from "../protocol/transfer.ts";
import { lastOrdinal, retainedBefore } from "./coverage.ts";
import { NATIVE_OBSTACLES, nativeFork, type NativeObstacle } from "./fork-availability.ts";
import { unusedOf } from "./start-candidates.ts";
import type { StartBase, StartFacts, StartTarget, UnsupportedBase } from "./start-plan.ts";

/** The base that a pending fork asks for; null where it carries nothing and the run starts like any other. */
export function resolveFork(facts: StartFacts, transfer: TransferRecord): StartBase | null {
  const strategy = transfer.requestedStrategy;
  const carries = facts.fork?.point.carries ?? true;
  // A conversation that was only pointed at, or a cut before its first message.
  if (strategy === "none" || strategy === "new_session") return null;
  if (strategy === "auto" && !carries) return null;
  if (facts.continuity === "projected-only") {
    return strategy === "native"
      ? nativeUnsupported("projected_only")
      : { kind: "projected", transferId: transfer.id };
  }
  const native = strategy === "replay" ? null : resolveNative(facts, transfer);
  return native ?? resolveText(facts, transfer, carries);
}

/** Null where `auto` goes on with text. */
function resolveNative(facts: StartFacts, transfer: TransferRecord): StartBase | null {
  const { fork, target } = facts;
  const strict = transfer.requestedStrategy === "native";
  // Who wants a clean context wants none of the source's conversation in it.
  if (!strict && target.cleanContext) return null;
  const forked = forkedAlready(facts, transfer);
  if (forked !== null) return forked;
  const place =
    fork === null ? "no_native_thread" : nativeFork(target.capabilities, fork.point, { ...fork, target });
  if (typeof place === "string") return strict ? nativeUnsupported(place) : null;
  if (!strict && fork?.nativeFailed === true) return null;
  if (transfer.intent !== null) {
    return {
      kind: "unsupported",
      code: "FORK_NATIVE_INDETERMINATE",
      text: "Whether the provider has forked its conversation is not known; reconcile the thread, then send again.",
    };
  }
  return { kind: "native_fork", transferId: transfer.id, ...place };
}

/** The provider has forked for an attempt that nobody accepted: that fork is resumed, not made again. */
function forkedAlready(facts: StartFacts, transfer: TransferRecord): StartBase | null {
  if (transfer.status !== "resolved_native" || transfer.resolution?.strategy !== "native_fork") return null;
  const { driver, nativeId } = transfer.resolution.providerThreadRef;
  const mine = facts.providerThreads.find(
    (one) =>
      one.instanceId === facts.target.instanceId &&
      one.continuity === "ok" &&
      one.nativeThreadRef?.driver === driver &&
      one.nativeThreadRef.nativeId === nativeId &&
      !facts.failedResume.includes(one.id),
  );
  return mine === undefined ? null : { kind: "none", providerThreadId: mine.id, transferId: transfer.id };
}

/** The first run of a subagent: what it is told of its parent, by text or as its own first items (C8.3). */
export function resolveSpawn(facts: StartFacts, { id }: TransferRecord): StartBase {
  const { channels, full } = facts.target.capabilities.context;
  if (channels.length === 0 || !full) return contextUnsupported(facts.target);
  return toldAnew(facts, { transferId: id, coverage: "full" });
}

function toldAnew(
  facts: StartFacts,
  told: { readonly transferId: TransferId; readonly coverage: "full" | "checkpoint" },
): StartBase {
  const retained = retainedBefore(facts);
  return {
    kind: "handoff",
    into: "new",
    ...told,
    providerThreadId: unusedOf(facts)?.id ?? null,
    runs: retained,
    baseOrdinal: null,
    sourceOrdinal: lastOrdinal(retained),
    staleness: [],
  };
}

function resolveText(facts: StartFacts, transfer: TransferRecord, carries: boolean): StartBase {
  if (!carries) {
    return {
      kind: "unsupported",
      code: "FORK_SEED_EMPTY",
      text: "Nothing lies before the point of the fork, so there is nothing to replay; start a new thread.",
    };
  }
  if (facts.fork?.replay === false) {
    return {
      kind: "unsupported",
      code: "FORK_REPLAY_DISABLED",
      text: `${facts.target.provider} would have to be told by replay, which is switched off; switch it on, or run the fork where its source ran.`,
    };
  }
  const { channels, full } = facts.target.capabilities.context;
  if (channels.length === 0 || !full) return contextUnsupported(facts.target);
  const { checkpointId, providerThreadRef } = transfer.sourcePoint;
  const coverage = checkpointId !== null && providerThreadRef === null ? "checkpoint" : "full";
  return toldAnew(facts, { transferId: transfer.id, coverage });
}

/** C4.9: the provider cannot be told what the run needs to know. */
export function contextUnsupported({ provider }: Pick<StartTarget, "provider">): UnsupportedBase {
  return {
    kind: "unsupported",
    code: "CONTEXT_UNSUPPORTED",
    text: `${provider} takes no context in any way that would do here; nothing was sent. Choose another provider for this message.`,
  };
}

function nativeUnsupported(why: NativeObstacle | "projected_only"): UnsupportedBase {
  const sentence =
    why === "projected_only" ? "the thread opens on its snapshot alone" : NATIVE_OBSTACLES[why];
  return {
    kind: "unsupported",
    code: "FORK_NATIVE_UNSUPPORTED",
    text: `A native fork is not possible here: ${sentence}. Fork with \`replay\` or \`auto\`.`,
  };
}
