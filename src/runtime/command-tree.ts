/**
 * Commands on a tree from a process that does not own it (REC-2). With a live owner the command is a row of its inbox, and
 * the owner's answer the receipt. Without one the tree is claimed for the command alone: nothing is recovered and nothing
 * runs; what the command asks for waits until somebody opens the tree.
 *
 * - K1 A command is applied once, by whichever of the two: its row says so in the commit that applies it.
 * - K2 An owner that dies meanwhile leaves the row; the tree is then claimed and the same row applied.
 */
import { CoppiceError, RejectedError, TransientError } from "../protocol/errors.ts";
import type { CommandRecord, CommandVerb } from "../protocol/command.ts";
import type { TreeId } from "../protocol/ids.ts";
import type { JsonObject } from "../protocol/json.ts";
import { PROFILES } from "../protocol/profile.ts";
import { applyCommand } from "../control/inbox.ts";
import { type PlanContext, Transaction } from "../control/transaction.ts";
import { type Clock, delay, systemClock } from "../platform/clock.ts";
import { sha256 } from "../platform/digest.ts";
import { createIds, type Ids, systemRandom } from "../platform/ids.ts";
import { ownIdentity, provenDead } from "../platform/process-identity.ts";
import { createRedactor } from "../platform/redact.ts";
import type { Store, StoreView } from "../store/port.ts";
import { liveOwner } from "./tree-reader.ts";

export interface CommandOptions {
  readonly clock?: Clock;
  /** How long the owner's answer is waited for; 10 s by default. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface CommandReceipt {
  /** `owner`: a live owner has applied it. `here`: nobody owns the tree, so nothing runs on it yet. */
  readonly appliedBy: "owner" | "here";
  readonly answer: JsonObject;
}

const LOOK_MS = 25;
const ANSWER_MS = 10_000;
/** The claim lasts for one commit; a process that dies in it is proved dead, or waited for so long. */
const CLAIM_MS = 5_000;

/**
 * Carries out one command.
 * @throws the refusal of the command; RejectedError `NOT_OWNER` when the owner gives no answer in time: the command stays in
 * its inbox then.
 */
export async function commandTree(
  store: Store,
  treeId: TreeId,
  verb: CommandVerb,
  args: JsonObject,
  options: CommandOptions = {},
): Promise<CommandReceipt> {
  const { clock = systemClock, timeoutMs = ANSWER_MS, signal } = options;
  const ids = createIds(systemRandom);
  const command: CommandRecord = {
    id: ids.mint("cmd"),
    treeId,
    verb,
    arguments: args,
    state: "pending",
    answer: null,
    createdAt: clock.now(),
    doneAt: null,
  };
  const until = clock.monotonic() + timeoutMs;
  let posted = false;
  for (;;) {
    const seen = await store.read((view) => ({
      owner: liveOwner(view, treeId, provenDead),
      row: view.command(command.id),
    }));
    if (seen.row !== undefined && seen.row.state !== "pending") return receiptOf(seen.row);
    if (seen.owner === null) {
      const answer = await applyHere(store, ids, command, posted);
      if (answer !== null) return answer;
    } else if (!posted) {
      await store.command(command);
      posted = true;
    } else if (clock.monotonic() >= until) {
      throw new RejectedError(
        "NOT_OWNER",
        `process ${seen.owner.pid} on ${seen.owner.host} owns the tree and has not answered within ${timeoutMs} ms; ` +
          "the command stays in its inbox.",
        { commandId: command.id, timedOut: true },
      );
    }
    await delay(clock, LOOK_MS, signal);
  }
}

/** Null when another process was faster with its claim. */
async function applyHere(
  store: Store,
  ids: Ids,
  command: CommandRecord,
  posted: boolean,
): Promise<CommandReceipt | null> {
  const { treeId } = command;
  const identity = ownIdentity();
  let lease;
  try {
    const token = ids.mint("tok");
    lease = await store.claim({ treeId, token, owner: identity, leaseMs: CLAIM_MS, provenDead });
  } catch (error) {
    if (CoppiceError.is(error) && error.code === "NOT_OWNER") return null;
    throw error;
  }
  try {
    return await store.commit(lease, (tx) => {
      if (!posted) tx.putCommand(command);
      const row = tx.command(command.id)!;
      if (row.state === "pending") {
        applyCommand(new Transaction(tx, withoutOwner(tx, treeId, ids)), row, () => "");
        return { appliedBy: "here", answer: tx.command(command.id)!.answer as JsonObject } as const;
      }
      return receiptOf(row);
    });
  } finally {
    await store.release(lease, { abandon: true });
  }
}

function receiptOf(row: CommandRecord): CommandReceipt {
  const answer = row.answer as JsonObject;
  if (row.state === "done") return { appliedBy: "owner", answer };
  throw refusalOf(answer);
}

/** The owner's refusal, as it would have been thrown there. */
function refusalOf(answer: JsonObject): CoppiceError {
  const message = answer["message"] as string;
  const details = (answer["details"] ?? {}) as JsonObject;
  const code = answer["code"] as string;
  if (answer["retryable"] === true && code.startsWith("STORE_")) {
    return new TransientError(code as TransientError["code"], message, details);
  }
  return new RejectedError(code as RejectedError["code"], message, details);
}

/** What a plan may know of a tree that nobody has in memory. */
function withoutOwner(view: StoreView, treeId: TreeId, ids: Ids): PlanContext {
  const record = view.tree(treeId)!;
  const nothing = (): never => {
    throw new RejectedError("NOT_OWNER", "a tree without an owner takes no such command; open it first.", {
      treeId,
    });
  };
  return {
    treeId,
    profile: PROFILES[record.profile],
    limits: record.limits,
    ids,
    composed: () => true,
    parksWaits: () => true,
    contextWindow: (agent) => agent.config.contextWindow ?? 128_000,
    drainedSeq: () => 0,
    permitsFree: () => 0,
    isStarting: () => false,
    onlyPinnedInTheWay: () => false,
    resolveConfig: nothing,
    loaded: () => false,
    modelHint: () => null,
    position: () => 0,
    redact: createRedactor([]),
    mintTokenDigest: () => sha256(ids.mint("tok")),
  };
}
