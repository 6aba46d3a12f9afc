/**
 * A session: a thread loaded in memory. It is a cache of stored rows and holds nothing that is not in the store, but for
 * the text of a request that is under way.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { InterruptedError } from "../protocol/errors.ts";
import type { RunRecord } from "../protocol/run.ts";
import type { TranscriptItem } from "../protocol/transcript.ts";
import type { ProviderSession } from "../providers/port.ts";
import type { Lifecycle } from "./lifecycle.ts";

export class Session {
  readonly lifecycle: Lifecycle;
  readonly provider: ProviderSession;
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
    readonly provider: ProviderSession;
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
  }

  #lifetime: AbortController | null = null;

  /** Aborted when the session is dropped from memory. There is none before somebody asks. */
  lifetime = (): AbortSignal => (this.#lifetime ??= new AbortController()).signal;

  /** What tools of this session have left running ends. */
  end(): void {
    this.#lifetime?.abort(new InterruptedError("RUN_INTERRUPTED", "the agent was unloaded."));
  }

  append(items: readonly TranscriptItem[]): void {
    for (const item of items) if (item.index >= this.items.length) this.items.push(item);
  }
}
