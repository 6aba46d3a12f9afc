/**
 * A caller from outside that is known by an agent's token (SEC-1): the host of a host-driven root, or a program in which an
 * agent runs. Its tools act as that agent and as nobody else.
 *
 * - C1 The token is looked up again at each call: one that was replaced, or whose agent is closed, is refused from then on.
 * - C2 Closing it ends the connection, never what was asked for (HDR-4).
 */
import type { AgentPath } from "../protocol/agent-path.ts";
import type { AgentRecord } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { ThreadId } from "../protocol/ids.ts";
import type { AgentControl } from "../control/agent-control.ts";
import type { HostUsage } from "../control/host.ts";
import { abortable, type Begin, type CallOptions } from "../platform/abortable.ts";
import { check } from "../platform/check.ts";
import { sha256 } from "../platform/digest.ts";
import type { Store, StoreView } from "../store/port.ts";
import { agentTools, type HostTool, type HostToolOptions } from "../tools/host-tools.ts";
import { CONNECTION } from "./arguments.ts";
import type { HeldTrees } from "./held-trees.ts";

/** What `actAs` takes beside the token. */
export interface ConnectOptions extends CallOptions {
  /** Names the host of a host-driven root; its further connections give the same name. Default: a host of its own. */
  readonly host?: string;
}

/** A caller from outside that acts as one agent, from `runtime.actAs`. */
export class Connection implements Disposable {
  readonly threadId: ThreadId;
  readonly path: AgentPath;
  readonly #control: AgentControl;
  readonly #agent: AgentRecord;
  readonly #token: string;
  readonly #seat: Disposable | null;
  #open = true;

  constructor(control: AgentControl, agent: AgentRecord, token: string, seat: Disposable | null) {
    this.threadId = agent.threadId;
    this.path = agent.path;
    this.#control = control;
    this.#agent = agent;
    this.#token = token;
    this.#seat = seat;
  }

  /** The tools of this agent, in the form that every binding takes. */
  tools(options: HostToolOptions = {}): readonly HostTool[] {
    check("Connection.tools", CONNECTION.tools, options);
    return agentTools(this.#control, this.#agent, { ...options, authorise: () => this.#authorise() });
  }

  /** What the host's own loop has used; budgets count it, and figures without it are marked partial (HDR-5). */
  async usage(used: HostUsage, options: CallOptions = {}): Promise<void> {
    check("Connection.usage", CONNECTION.usage, { used, options });
    await abortable(options.signal, () => this.#authorise());
    await this.#control.reportUsage(this.threadId, used, options);
  }

  async #authorise(): Promise<void> {
    if (!this.#open) throw tokenInvalid("the connection is closed; open another one");
    await this.#control.read((view) => requireToken(view, this.#token));
  }

  /** Ends the connection; what was asked for goes on. */
  close(): void {
    this.#open = false;
    this.#seat?.[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** @throws RejectedError `TOKEN_INVALID`; `NOT_OWNER`. */
export async function connect(
  store: Store,
  trees: HeldTrees,
  {
    token,
    host,
    begin,
  }: { readonly token: string; readonly host: string | undefined; readonly begin: Begin },
): Promise<Connection> {
  const agent = await store.read((view) => requireToken(view, token));
  await trees.settled(agent.treeId);
  begin();
  const { control } = trees.requireOwned(agent.treeId).handle;
  const seat = agent.hostDriven ? control.hosts.connect(host) : null;
  return new Connection(control, agent, token, seat);
}

function requireToken(view: StoreView, token: string): AgentRecord {
  const agent = view.agentByToken(sha256(token));
  if (agent?.state === "open") return agent;
  throw tokenInvalid("no living agent has this token; mint one for the agent and use that");
}

function tokenInvalid(why: string): RejectedError {
  return new RejectedError("TOKEN_INVALID", `${why}.`);
}
