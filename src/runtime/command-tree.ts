/**
 * Commands on a tree from a process that does not own it (REC-2). With a live owner the command is a row of its inbox, and
 * the owner's answer the receipt. Without one the tree is claimed for the command alone: nothing runs; what the command asks
 * for waits until somebody opens the tree.
 *
 * - K1 A command is applied once, by whichever of the two: its row says so in the commit that applies it.
 * - K2 An owner that dies meanwhile leaves the row; the tree is then claimed and the same row applied.
 * - K3 An id names the row: the same command from several processes, or sent again, is one row, and its answer the receipt. What
 *   was refused was no effect: its id names another row then. In the whole store it names the command (lineage C3.12).
 */
import { CoppiceError, RejectedError, TransientError } from "../protocol/errors.ts";
import type { CommandRecord, CommandVerb } from "../protocol/command.ts";
import type { TreeId } from "../protocol/ids.ts";
import type { JsonObject } from "../protocol/json.ts";
import { type LineageLimitsInput, lineageLimitsSchema } from "../protocol/lineage-limits.ts";
import type { ProvenDead } from "../protocol/process-identity.ts";
import { liveOwner } from "../control/live-owner.ts";
import { applyCommand, askedOf, givenBy, refuseCommand, storable } from "../control/inbox.ts";
import { recoverUnowned } from "../control/recovery.ts";
import { untilMended } from "../control/until-mended.ts";
import { type PlanContext, Transaction } from "../control/transaction.ts";
import { abortable, type Begin, type CallOptions } from "../platform/abortable.ts";
import { check } from "../platform/check.ts";
import { type Clock, delay, systemClock } from "../platform/clock.ts";
import { canonicalJson } from "../platform/canonical-json.ts";
import { sha256 } from "../platform/digest.ts";
import { createIds, type Ids, systemRandom } from "../platform/ids.ts";
import { createRedactor } from "../platform/redact.ts";
import { silentLogger } from "../platform/logger.ts";
import { ownIdentity, provenDead } from "../platform/process-identity.ts";
import type { Store, StoreTx, StoreView } from "../store/port.ts";
import { RUNTIME } from "./arguments.ts";
import { withoutOwner } from "./without-owner.ts";

/** What `commandTree` takes beside the command. */
export interface CommandOptions extends CallOptions {
  readonly clock?: Clock;
  /** How long the owner's answer is waited for; 10 s by default. */
  readonly timeoutMs?: number;
  /** Names the command in the whole store (SPN-6, lineage C3.12): the same id and arguments, the same receipt, however often it is sent. */
  readonly commandId?: string;
  /** False: a tree of another process is refused with `NOT_OWNER`, and nothing is put into its inbox. */
  readonly forward?: boolean;
  /** False: without an owner the command waits for the next one, and the receipt says so. */
  readonly claim?: boolean;
  readonly provenDead?: ProvenDead;
  /** Kept out of all that another provider may read, as of `createRuntime` (SEC-3); for a tree that nobody owns. */
  readonly secrets?: readonly string[];
  /** As of `createRuntime`; for a tree that nobody owns. */
  readonly lineage?: LineageLimitsInput;
}

/** What has become of a command. */
export interface CommandReceipt {
  /**
   * `owner`: a live owner has applied it. `here`: nobody owns the tree, so nothing runs on it yet. `nobody`: it waits for an
   * owner, and there is no answer yet.
   */
  readonly appliedBy: "owner" | "here" | "nobody";
  readonly answer: JsonObject;
}

/** One that is sent always has its verb; one that is read may have lost it. */
type SentCommand = CommandRecord & { readonly verb: CommandVerb };

/** They look at what nobody will settle any more first, so that a dead owner's run is in nobody's way (lineage C14.6). */
const RECONCILES: ReadonlySet<CommandVerb> = new Set(["continue", "close", "undo_rollback"]);
const LOOK_MS = 25;
const ANSWER_MS = 10_000;
/** The claim lasts for one commit; a process that dies in it is proved dead, or waited for so long. */
const CLAIM_MS = 5_000;

/**
 * Carries out one command on a tree, whichever process owns it: one of `CommandVerb`.
 * @throws the refusal of the command, `INVALID_ARGUMENT` before anything is stored; RejectedError `AGENT_NOT_FOUND` for an unknown tree; `NOT_OWNER` when the owner
 * gives no answer in time: the command stays in its inbox then; `COMMAND_ID_CONFLICT` when the id was used for another
 * command.
 */
export async function commandTree(
  store: Store,
  treeId: TreeId,
  verb: CommandVerb,
  args: JsonObject,
  options: CommandOptions = {},
): Promise<CommandReceipt> {
  check("commandTree", RUNTIME.commandTree, { store, treeId, verb, args, options });
  // Looked at before it is stored: JSON has no word for what only memory can hold, and would say another (NaN is null).
  const given = storable({ verb, treeId, arguments: args });
  return abortable(options.signal, (begin) => send(store, treeId, verb, given, options, begin));
}

async function send(
  store: Store,
  treeId: TreeId,
  verb: CommandVerb,
  args: JsonObject,
  options: CommandOptions,
  begin: Begin,
): Promise<CommandReceipt> {
  const { clock = systemClock, timeoutMs = ANSWER_MS, signal } = options;
  const isDead = options.provenDead ?? provenDead;
  const ids = createIds(systemRandom);
  const { commandId } = options;
  const command: SentCommand = {
    id:
      commandId === undefined ? ids.mint("cmd") : await store.read((view) => rowOf(view, treeId, commandId)),
    treeId,
    verb,
    arguments: commandId === undefined ? args : { ...args, command_id: commandId },
    state: "pending",
    answer: null,
    createdAt: clock.now(),
    doneAt: null,
  };
  const until = clock.monotonic() + timeoutMs;
  let posted = false;
  for (;;) {
    const seen = await store.read((view) => ({
      known: view.tree(treeId) !== undefined,
      owner: liveOwner(view, treeId, isDead),
      row: view.command(command.id),
    }));
    if (!seen.known) throw unknownTree(store, treeId);
    if (seen.row !== undefined) requireSame(seen.row, command, commandId);
    if (seen.row !== undefined && seen.row.state !== "pending") return receiptOf(seen.row);
    posted ||= seen.row !== undefined;
    if (seen.owner === null && options.claim === false) {
      if (posted) return { appliedBy: "nobody", answer: {} };
      begin();
      await store.command(command);
      posted = true;
    } else if (seen.owner === null) {
      begin();
      const answer = await applyHere(store, ids, command, isDead, {
        redact: createRedactor(options.secrets ?? []),
        lineage: lineageLimitsSchema.parse(options.lineage ?? {}),
      });
      if (answer !== null) return answer;
    } else if (options.forward === false) {
      throw new RejectedError(
        "NOT_OWNER",
        `process ${seen.owner.pid} on ${seen.owner.host} owns the tree; send the command from there, or forward it.`,
        { treeId, owner: { pid: seen.owner.pid, host: seen.owner.host } },
      );
    } else if (!posted) {
      begin();
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

function unknownTree(store: Store, treeId: TreeId): RejectedError {
  return new RejectedError(
    "AGENT_NOT_FOUND",
    `no tree ${treeId} is in this store (${store.name}); list the trees there, and name one by its root's thread id.`,
    { tree: treeId },
  );
}

/** Of the id alone, so that every sender means the same row: the first that was not refused. */
function rowOf(view: StoreView, treeId: TreeId, commandId: string): CommandRecord["id"] {
  for (let refused = 0; ; refused += 1) {
    const again = refused === 0 ? "" : `:${refused}`;
    const id = `cmd_${sha256(`${treeId}:${commandId}${again}`).slice(0, 21)}` as const;
    const row = view.command(id);
    // One that could not be read was answered for good.
    if (row?.state !== "refused" || row.verb === null) return id;
  }
}

function requireSame(row: CommandRecord, command: CommandRecord, commandId: string | undefined): void {
  if (isSame(row, command)) return;
  throw new RejectedError(
    "COMMAND_ID_CONFLICT",
    "this id was used before with another command; use a new one.",
    { commandId: commandId ?? null, verb: row.verb },
  );
}

function isSame(row: CommandRecord, command: CommandRecord): boolean {
  // It stands for one that could not be read, and its answer says so.
  if (row.verb === null) return true;
  if (row.verb !== command.verb) return false;
  return canonicalJson(askedOf(givenBy(row))) === canonicalJson(askedOf(givenBy(command)));
}

/** Null when another process was faster with its claim, or with another command of this id. */
async function applyHere(
  store: Store,
  ids: Ids,
  command: SentCommand,
  isDead: ProvenDead,
  given: Pick<PlanContext, "redact" | "lineage">,
): Promise<CommandReceipt | null> {
  const { treeId } = command;
  const identity = ownIdentity();
  let lease;
  try {
    const token = ids.mint("tok");
    lease = await store.claim({ treeId, token, owner: identity, leaseMs: CLAIM_MS, provenDead: isDead });
  } catch (error) {
    if (CoppiceError.is(error) && error.code === "NOT_OWNER") return null;
    throw error;
  }
  const look = (tx: StoreTx): Transaction => new Transaction(tx, withoutOwner(tx, treeId, ids, given));
  const apply = (): Promise<CommandReceipt | null> =>
    store.commit(lease, (tx) => {
      if (tx.command(command.id) === undefined) tx.putCommand(command);
      const row = tx.command(command.id)!;
      if (!isSame(row, command)) return null;
      if (row.state === "pending") {
        const plan = look(tx);
        if (RECONCILES.has(command.verb)) recoverUnowned(plan, given.lineage.reservationTtlMs);
        applyCommand(plan, row, () => "");
        return { appliedBy: "here", answer: tx.command(command.id)!.answer as JsonObject } as const;
      }
      return receiptOf(row);
    });
  try {
    return await untilMended(apply, {
      treeId,
      shared: { logger: silentLogger },
      commit: (plan) => store.commit(lease, (tx) => plan(look(tx))),
    });
  } catch (error) {
    if (!CoppiceError.is(error) || error.family !== "rejected" || error.code === "FENCED") throw error;
    // Refused is answered: the next owner must not find it pending, and carry it out after all.
    await store.commit(lease, (tx) => {
      const row = tx.command(command.id);
      if (row !== undefined) refuseCommand(look(tx), row, error);
    });
    throw error;
  } finally {
    // The command is answered, whatever becomes of the claim; it ends by itself.
    await store.release(lease, { abandon: true }).catch(() => undefined);
  }
}

function receiptOf(row: CommandRecord): CommandReceipt {
  const answer = row.answer as JsonObject;
  // A refusal in the verb's own words is no error.
  if (row.state === "done" || answer["code"] === undefined) return { appliedBy: "owner", answer };
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
