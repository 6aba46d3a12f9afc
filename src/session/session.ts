/**
 * A session: a thread loaded in memory. It is a cache of stored rows and holds nothing that is not in the store, but for
 * the text of a request that is under way.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { InterruptedError } from "../protocol/errors.ts";
import type { RunId } from "../protocol/ids.ts";
import type { RunRecord } from "../protocol/run.ts";
import { isInherited, type TranscriptItem } from "../protocol/transcript.ts";
import type { ProviderSession } from "../providers/port.ts";
import type { Lifecycle } from "./lifecycle.ts";
import type { NativeConversation } from "./native-conversation.ts";

/** What the provider has opened for a session, by who owns the loop. */
export type OpenedProvider =
  | { readonly loop: "ours"; readonly session: ProviderSession; close(): Promise<void> }
  | NativeConversation;

/** What a provider has not seen of a transcript: whole runs, and what stands before the first one. */
export interface Foreign {
  readonly runs: ReadonlySet<RunId>;
  readonly inherited: boolean;
}

/**
 * The part of a transcript that is one provider's conversation. What was inherited is first in it, also where the words of a
 * request that no provider took were written before.
 */
export function conversationOf(
  items: readonly TranscriptItem[],
  foreign: Foreign | null,
): readonly TranscriptItem[] {
  const seen =
    foreign === null
      ? items
      : items.filter(({ runId }) => (runId === null ? !foreign.inherited : !foreign.runs.has(runId)));
  if (seen.findIndex(isInherited) <= 0) return seen;
  return [...seen.filter(isInherited), ...seen.filter((item) => !isInherited(item))];
}

export class Session {
  readonly lifecycle: Lifecycle;
  provider: OpenedProvider;
  agent: AgentRecord;
  run: RunRecord | null;
  items: TranscriptItem[];
  /** It has had a run since it was loaded. */
  ran: boolean;
  /** What the request under way has said so far; kept with an interrupted run. */
  partialText = "";
  /** Settles when the provider has nothing more to say in the request that was last made. */
  ending: Promise<void> | null = null;
  /** Aborts the request and the tools of the current drive; made when a drive starts. */
  abort: AbortController | null = null;
  /** Settles when the drive that was last started has ended. */
  drive: Promise<void> | null = null;
  /** Grows with each drive; a drive whose number is not current touches nothing any more. */
  generation = 0;

  constructor(parts: {
    readonly lifecycle: Lifecycle;
    readonly provider: OpenedProvider;
    readonly agent: AgentRecord;
    readonly run: RunRecord | null;
    readonly items: TranscriptItem[];
  }) {
    this.lifecycle = parts.lifecycle;
    this.provider = parts.provider;
    this.agent = parts.agent;
    this.run = parts.run;
    this.ran = parts.run !== null;
    this.items = parts.items;
    this.#storedPolicy = parts.agent.config.policyHash;
  }

  /** Runs whose items are not in the conversation of the provider thread that is gone on with; null for none. */
  foreign: Foreign | null = null;

  /** What the provider of the current run has seen of the transcript. */
  conversation(): readonly TranscriptItem[] {
    return conversationOf(this.items, this.foreign);
  }

  #storedPolicy: string;
  #lifetime: AbortController | null = null;

  /** Aborted when the session is dropped from memory. There is none before somebody asks. */
  lifetime = (): AbortSignal => (this.#lifetime ??= new AbortController()).signal;

  /** What tools of this session have left running ends. */
  end(): void {
    this.#lifetime?.abort(new InterruptedError("RUN_INTERRUPTED", "the agent was unloaded."));
  }

  /** Follows what was committed for its run; the configuration is the one it was loaded with (RES-8). */
  absorb({ agent, run }: { readonly agent: AgentRecord; readonly run: RunRecord }): void {
    const { effects, tools } = this.agent.config;
    // On another provider or model it is another configuration, and no wider than the one before.
    const rebound = agent.config.policyHash !== this.#storedPolicy;
    this.#storedPolicy = agent.config.policyHash;
    this.agent = { ...agent, config: rebound ? { ...agent.config, effects, tools } : this.agent.config };
    // A settled run is taken out by the reaction to its settle.
    if (this.run?.id === run.id) this.run = run;
  }

  append(items: readonly TranscriptItem[]): void {
    for (const item of items) if (item.index >= this.items.length) this.items.push(item);
  }
}
