/**
 * What agents do with threads of other trees (XTR), behind their tools. Threads are addressed by id, and a root alone: an
 * agent below one is reached through its root (XTR-3).
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { CoppiceError, RejectedError } from "../protocol/errors.ts";
import { isRunId, type ThreadId, type TreeId } from "../protocol/ids.ts";
import type { JsonObject } from "../protocol/json.ts";
import { forkPolicySchema } from "../protocol/thread.ts";
import { requireText } from "../platform/text.ts";
import type { BetweenTrees, CallFrom, ForkAsked, NewThread, PageAsked } from "../control/between-trees.ts";
import { actingAs } from "../control/caller.ts";
import { once, receiptKey } from "../control/idempotency.ts";
import type { SendResult, StoreView } from "../store/port.ts";
import { requireTitle } from "./fork.ts";
import { createThreads, forkThread, messageTo } from "./made-by-agent.ts";
import { mergeBack } from "./merge-back.ts";
import { capabilitiesOf, type ThreadPorts } from "./ports.ts";
import { redactedTitle, pageFor } from "./thread-page.ts";
import { requireThread } from "./thread-view.ts";
import { requireOpenThread } from "./verbs.ts";

type Ports = Pick<
  ThreadPorts,
  "store" | "ids" | "lineage" | "redact" | "logger" | "providers" | "open" | "apply"
>;

export class AgentThreads implements BetweenTrees {
  readonly policy: BetweenTrees["policy"];
  readonly #portsOf: () => Ports;

  /** The ports are asked for late: what stands behind them is made of what this is a part of. */
  constructor(ports: () => Ports, policy: BetweenTrees["policy"]) {
    this.#portsOf = ports;
    this.policy = policy;
  }

  get #ports(): Ports {
    return this.#portsOf();
  }

  async create(
    from: CallFrom,
    threads: readonly NewThread[],
  ): Promise<{ readonly threads: readonly ThreadId[] }> {
    const key = receiptKey(from.caller, from.key);
    const made = await from.tree.transact((tx) =>
      once(tx, key, { verb: "create_thread", threads } as unknown, () => ({
        threads: [...createThreads(tx, from, threads)],
      })),
    );
    for (const id of made.threads) await this.#wake(id);
    return made;
  }

  async send(
    from: CallFrom,
    thread: string,
    message: string,
  ): Promise<{ readonly id: string; readonly seq: number }> {
    const { tree, caller } = from;
    if (message.trim() === "")
      throw new RejectedError("INVALID_ARGUMENT", "message is blank; say something.", {
        argument: "message",
      });
    requireText("message", message, tree.limits.mailInlineBytes);
    const draft = await tree.look((look) => {
      const sender = actingAs(look, caller).agent!;
      const recipient = otherRoot(look.store, sender.treeId, thread);
      requireOpenThread(recipient);
      const about = { key: receiptKey(caller, from.key), at: look.now };
      return messageTo(this.#ports.ids.mint("msg"), sender, recipient, message, about);
    });
    const [sent] = await this.#ports.store.send([draft]);
    const { id, seq } = accepted(sent!, draft);
    await this.#wake(draft.treeId);
    return { id, seq };
  }

  /** A tree that nobody owns has nobody who would see that it has something to do (XTR-2). */
  async #wake(tree: TreeId): Promise<void> {
    try {
      await this.#ports.open(tree);
    } catch (error) {
      // What was accepted stays accepted: another process owns it, or whoever opens it next goes on with it.
      if (CoppiceError.is(error) && error.code === "NOT_OWNER") return;
      this.#ports.logger.warn({ treeId: tree, err: error }, "a thread that has mail could not be opened");
    }
  }

  read({ tree, caller }: CallFrom, { thread, before, limit }: PageAsked): Promise<JsonObject> {
    const { redact, lineage } = this.#ports;
    return tree.read((view) => {
      const reader = view.agent(caller.threadId)!;
      const read = ownOrRoot(view, reader, thread);
      return pageFor(view, reader, read, { before, limit, depth: lineage.ancestorDepthMaximum, redact });
    });
  }

  async fork(from: CallFrom, asked: ForkAsked): Promise<JsonObject> {
    const { tree, caller } = from;
    const capabilities = await capabilitiesOf(this.#ports.providers);
    const { run, strategy = "auto", message = null } = asked;
    if (run !== undefined && !isRunId(run)) {
      throw new RejectedError("INVALID_ARGUMENT", "run_id is no id of a run; use one that a tool returned.", {
        argument: "run_id",
      });
    }
    const title = asked.title === undefined ? null : requireTitle(asked.title);
    const forked = await tree.transact((tx) =>
      once(tx, receiptKey(caller, from.key), { verb: "fork_thread", ...asked } as unknown, () => {
        const source = ownOrRoot(tx.store, tx.agent(caller.threadId), asked.source).threadId;
        const request = {
          source,
          at:
            run === undefined ? ({ kind: "latest_stable" } as const) : ({ kind: "run", runId: run } as const),
          policy: forkPolicySchema.parse({ strategy }),
          title,
          createdBy: "agent",
        } as const;
        const { agent, transfer } = forkThread(tx, from, { request, capabilities, message });
        return {
          thread_id: agent.threadId,
          title: redactedTitle(agent, tx.context.redact),
          forked_from: source,
          transfer_id: transfer.id,
          effects: [...agent.config.effects],
        };
      }),
    );
    if (message !== null) await this.#wake(forked.thread_id);
    return forked;
  }

  mergesIntoOwn({ tree, caller }: CallFrom, asked: string | undefined): Promise<boolean> {
    return tree.read((view) => {
      const { into } = mergeEnds(view, view.agent(caller.threadId)!, asked);
      return into.threadId === caller.threadId;
    });
  }

  async mergeBack(
    { tree, caller, key }: CallFrom,
    asked: string | undefined,
  ): Promise<{ readonly transferId: string; readonly into: ThreadId }> {
    const { fork, into } = await tree.look((look) => {
      actingAs(look, caller);
      return mergeEnds(look.store, look.agent(caller.threadId), asked);
    });
    const receipt = receiptKey(caller, key);
    const transferId = await this.#ports.apply(into.treeId, (tx) =>
      once(tx, receipt, { verb: "merge_back", fork: fork.threadId }, () => {
        const request = {
          fork: fork.threadId,
          target: into.threadId,
          run: null,
          createdBy: "agent",
        } as const;
        return mergeBack(tx, request).id;
      }),
    );
    return { transferId, into: into.threadId };
  }

  targets({ tree }: CallFrom, threads: readonly string[]): Promise<readonly AgentRecord[]> {
    return tree.read((view) => threads.map((id) => otherRoot(view, tree.treeId, id)));
  }
}

/** The fork and its parent: of the caller's own thread, or of a fork that the caller is or has made (C7.1). */
function mergeEnds(
  view: StoreView,
  caller: AgentRecord,
  asked: string | undefined,
): { readonly fork: AgentRecord; readonly into: AgentRecord } {
  const fork = asked === undefined ? caller : requireThread(view, asked);
  const parent =
    fork.thread?.lineage.relationshipToParent === "fork" ? fork.thread.lineage.parentThreadId : null;
  if (parent === null) {
    throw new RejectedError(
      "MERGE_BACK_NOT_A_FORK",
      `${fork.threadId} is no fork of another thread; name a fork, or send a message.`,
      { fork: fork.threadId },
    );
  }
  const maker = view.tree(fork.treeId)?.billedTo?.threadId;
  if (parent !== caller.threadId && fork.threadId !== caller.threadId && maker !== caller.threadId) {
    throw new RejectedError(
      "AUTHORITY_ESCALATION_DENIED",
      `${fork.threadId} is neither a fork of your thread nor one that you have made; leave it to whoever owns it.`,
      { fork: fork.threadId, into: parent },
    );
  }
  return { fork, into: requireThread(view, parent) };
}

function ownOrRoot(view: StoreView, caller: AgentRecord, asked: string | undefined): AgentRecord {
  if (asked === undefined || asked === caller.threadId) return caller;
  return requireRoot(view, asked);
}

/** @throws RejectedError `INVALID_ARGUMENT` for a thread of the caller's own tree. */
function otherRoot(view: StoreView, own: TreeId, id: string): AgentRecord {
  const agent = requireRoot(view, id);
  if (agent.treeId !== own) return agent;
  throw new RejectedError(
    "INVALID_ARGUMENT",
    `${agent.threadId} is the root of your own tree; use the tools for agents of your tree.`,
    { threadId: agent.threadId },
  );
}

/** @throws RejectedError `THREAD_NOT_FOUND`; `INVALID_ARGUMENT` for an agent below a root, whose tree alone reaches it (XTR-3). */
function requireRoot(view: StoreView, id: string): AgentRecord {
  const agent = requireThread(view, id);
  if (agent.parent === null) return agent;
  throw new RejectedError(
    "INVALID_ARGUMENT",
    `${agent.threadId} is ${agent.path} of the tree ${agent.treeId} and is reached from within that tree alone; address its root.`,
    { threadId: agent.threadId, path: agent.path, root: agent.treeId },
  );
}

/** @throws RejectedError for what the store did not take. */
function accepted(
  sent: SendResult,
  draft: ReturnType<typeof messageTo>,
): { readonly id: string; readonly seq: number } {
  switch (sent.kind) {
    case "accepted":
      return sent.mail;
    case "duplicate":
      if (sent.mail.recipient === draft.recipient && sent.mail.content.text === draft.content.text)
        return sent.mail;
      throw new RejectedError(
        "COMMAND_ID_CONFLICT",
        "this idempotency key was used before with other arguments; use a new key.",
        { key: draft.key },
      );
    case "full":
      throw new RejectedError(
        "MAILBOX_FULL",
        `the mailbox of ${draft.recipient} has no room: ${sent.mailbox.unread} messages, ${sent.mailbox.unreadBytes} bytes are unread. Wait until it has read, then send again.`,
        {
          thread: draft.recipient,
          unread: sent.mailbox.unread,
          unreadBytes: sent.mailbox.unreadBytes,
          limit: { ...sent.capacity },
        },
      );
    default:
      throw new RejectedError(
        "THREAD_CLOSED",
        `${draft.recipient} was closed meanwhile and takes no messages.`,
        {
          threadId: draft.recipient,
        },
      );
  }
}
