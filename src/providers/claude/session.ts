/**
 * One agent's session with Claude Code: its conversation, the process that serves it while turns are asked of it, and the turn
 * under way.
 *
 * - X1 A process is started for the first turn and ended with the session, or for a turn that wants another model, effort,
 *   folder or tools. What only reads, forks or resumes starts none.
 * - X2 Claude has no lock on a conversation: whoever owns the tree is the only one who asks here.
 * - X3 A rollback is kept: the program goes back to a message and keeps a note behind it, which nobody answers.
 */
import { systemRandom, uuid } from "../../platform/ids.ts";
import { CoppiceError, describeError, RejectedError, TransientError } from "../../protocol/errors.ts";
import type {
  NativeAnswer,
  NativeEvent,
  NativeHistoryPage,
  NativeThread,
} from "../../protocol/native-events.ts";
import type { ThreadCapabilities } from "../../protocol/provider-capabilities.ts";
import type { StepUsage } from "../../protocol/provider-events.ts";
import type { NativeRef } from "../../protocol/provider-thread.ts";
import { Feed } from "../feed.ts";
import type { ProviderError } from "../json-rpc.ts";
import { withNativeAgents } from "../native-agents.ts";
import { capabilityMissing } from "../native-call.ts";
import type {
  NativeForkInput,
  NativeRollbackInput,
  NativeSession,
  NativeSessionInput,
  NativeTurnInput,
} from "../port.ts";
import { keptOf } from "./boundary.ts";
import { CLAUDE_CAPABILITIES } from "./capabilities.ts";
import { type ClaudeTurn, historyPage, turnsOf } from "./history.ts";
import { permit, type PermissionAsked } from "./permission.ts";
import type { ClaudeApprovals } from "./policy.ts";
import { type ClaudeListener, ClaudeProgram, type ClaudeProgramOptions } from "./program.ts";
import { type ClaudeSelection, isSame, settingsFor } from "./settings.ts";
import { ClaudeToolServer, TOOL_SERVER, type ToolCall } from "./tool-server.ts";
import type { ClaudeTranscripts } from "./transcripts.ts";
import { NOTHING_USED } from "../turn-told.ts";
import { less, refOf, totalOf, usageOf } from "./translate.ts";
import { ClaudeTurnUnderWay } from "./turn.ts";
import type { ClaudeMessage, ClaudeResult } from "./wire.ts";

const TURNS_A_PAGE = 20;

export interface ClaudeSessionOptions {
  readonly program: ClaudeProgramOptions;
  readonly transcripts: ClaudeTranscripts;
  readonly input: NativeSessionInput;
  readonly approvals: ClaudeApprovals;
  readonly nativeAgents: boolean;
}

interface Running {
  readonly program: ClaudeProgram;
  readonly selection: ClaudeSelection;
}

export class ClaudeSession implements NativeSession, ClaudeListener {
  readonly negotiated: ThreadCapabilities;
  readonly #options: ClaudeSessionOptions;
  readonly #feed = new Feed<NativeEvent>();
  #threadId: string | null = null;
  #running: Running | null = null;
  #turn: ClaudeTurnUnderWay | null = null;
  /** All that the conversation has used; null when that is not known yet. */
  #used: StepUsage | null = null;
  #gone: ProviderError | null = null;
  #closed = false;

  constructor(options: ClaudeSessionOptions) {
    this.#options = options;
    this.negotiated = withNativeAgents(CLAUDE_CAPABILITIES, options.nativeAgents);
  }

  events(): AsyncIterable<NativeEvent> {
    return this.#feed;
  }

  async ensureThread(): Promise<NativeThread> {
    await this.#stop();
    const id = uuid(systemRandom);
    this.#threadId = id;
    return { ref: refOf(id), head: null, turns: [], forkedFrom: null };
  }

  async resumeThread(ref: NativeRef): Promise<NativeThread> {
    const { nativeId: id } = ref;
    const turns = await this.#turnsOf(id);
    if (turns === null) throw lost(id);
    if (this.#threadId !== id) {
      await this.#stop();
      this.#threadId = id;
    }
    return nativeThread(id, turns, null);
  }

  async startTurn({
    policy,
    signal,
    ...input
  }: Parameters<NativeSession["startTurn"]>[0]): Promise<{ readonly turn: NativeRef | null }> {
    if (this.#gone !== null) throw this.#gone;
    if (this.#turn !== null) throw refused("a turn is under way already");
    const id = uuid(systemRandom);
    const turn = new ClaudeTurnUnderWay(input.key, id, (event) => this.#feed.push(event));
    this.#turn = turn;
    try {
      const { model, effort, effects, workspace } = policy;
      const program = await this.#programFor({ model, effort, effects, workspace }, signal);
      signal.throwIfAborted();
      program.say({ id, content: wordsOf(input).join("\n\n") });
      return { turn: refOf(id) };
    } catch (error) {
      if (this.#turn === turn) this.#turn = null;
      turn.end();
      throw error;
    }
  }

  async interruptTurn(_thread: NativeRef, key: string): Promise<void> {
    const turn = this.#turn;
    if (turn?.key !== key) return;
    turn.stop();
    // It would stop nothing before Claude has begun with it, and be forgotten.
    await turn.accepted.catch(() => undefined);
    if (this.#turn === turn) await this.#running?.program.interrupt().catch(() => undefined);
  }

  async respond(request: NativeRef, answer: NativeAnswer): Promise<void> {
    if (this.#turn?.answer(request.nativeId, answer) === true) return;
    throw new RejectedError("REQUEST_NOT_RESUMABLE", `nothing waits for an answer to ${request.nativeId}.`, {
      id: request.nativeId,
    });
  }

  /** In pieces, which is what tells it from a prompt later. */
  async steerTurn(input: NativeTurnInput): Promise<void> {
    const turn = this.#turn;
    const running = this.#running;
    if (turn?.key !== input.key || !turn.isAccepted || running === null)
      throw refused("there is no such turn to steer");
    const id = uuid(systemRandom);
    turn.steered(id);
    running.program.say({ id, content: wordsOf(input).map((text) => ({ type: "text", text })) });
  }

  async forkThread({ source, boundary, turns, signal }: NativeForkInput): Promise<NativeThread> {
    const there = await this.#turnsOf(source.nativeId);
    if (there === null) throw refused(`it has no conversation ${source.nativeId} any more`);
    const kept = keptOf(boundary, there, turns);
    if (kept === "nothing")
      throw capabilityMissing("threads.fork", "Claude forks no conversation before its start");
    signal?.throwIfAborted();
    const { transcripts, program } = this.#options;
    const upTo = kept === "all" ? null : kept.upTo;
    const id = await transcripts.fork(program.sdk, source.nativeId, upTo).catch((error: unknown) => {
      throw CoppiceError.is(error) ? error : refused(describeError(error));
    });
    if (id === null) throw refused(`it has no conversation ${source.nativeId} any more`);
    await this.#stop();
    this.#threadId = id;
    return nativeThread(id, (await this.#turnsOf(id)) ?? [], source);
  }

  async rollbackThread({ thread, boundary, turns }: NativeRollbackInput): Promise<NativeThread> {
    const id = thread.nativeId;
    if (this.#turn !== null) throw refused("a turn is under way");
    const there = await this.#turnsOf(id);
    if (there === null) throw lost(id);
    const kept = keptOf(boundary, there, turns);
    if (kept === "nothing") throw capabilityMissing("threads.rollback", "Claude empties no conversation");
    if (kept !== "all") {
      await this.#stop();
      await this.#goBack(id, kept.upTo);
    }
    return nativeThread(id, (await this.#turnsOf(id)) ?? [], null);
  }

  async readThread(thread: NativeRef, page?: string): Promise<NativeHistoryPage> {
    const turns = await this.#turnsOf(thread.nativeId);
    if (turns === null) throw refused(`it has no conversation ${thread.nativeId} any more`);
    const from = Number(page ?? 0);
    const running = this.#turn?.id ?? null;
    return historyPage(turns, Number.isInteger(from) ? from : 0, TURNS_A_PAGE, running);
  }

  async findForks(source: NativeRef): Promise<readonly NativeThread[]> {
    const found: NativeThread[] = [];
    for (const id of await this.#options.transcripts.forksOf(source.nativeId))
      found.push(nativeThread(id, (await this.#turnsOf(id)) ?? [], source));
    return found;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#turn?.end();
    this.#turn = null;
    this.#feed.end();
    await this.#stop();
  }

  heard(message: ClaudeMessage): void {
    const used = message.type === "result" ? this.#usedBy(message) : null;
    const turn = this.#turn;
    // Of a turn before, or of one that nobody here asked for.
    if (turn === null || !turn.heard(message, used)) return;
    if (this.#turn === turn) this.#turn = null;
  }

  lost(error: ProviderError): void {
    this.#gone = error;
    this.#turn?.end();
    this.#turn = null;
    this.#running = null;
    this.#feed.end(error);
  }

  async #turnsOf(id: string): Promise<readonly ClaudeTurn[] | null> {
    const { transcripts, program } = this.#options;
    const conversation = await transcripts.read(program.sdk, id);
    return conversation === null ? null : turnsOf(conversation);
  }

  /** Since the result before. Where that is not known what the turn itself has used is taken. */
  #usedBy({ usage, modelUsage }: ClaudeResult): StepUsage {
    const before = this.#used;
    const total = totalOf(modelUsage);
    this.#used = total;
    return before === null ? usageOf(usage ?? {}) : less(total, before);
  }

  async #programFor(selection: ClaudeSelection, signal: AbortSignal): Promise<ClaudeProgram> {
    const id = this.#threadId;
    if (id === null) throw refused("it has no conversation to take a turn in");
    if (this.#running !== null) {
      if (isSame(this.#running.selection, selection)) return this.#running.program;
      await this.#stop();
    }
    // It keeps nothing of a conversation before its first turn.
    const known = await this.#options.transcripts.has(id);
    signal.throwIfAborted();
    if (this.#closed) throw refused("its session is closed");
    this.#used = known ? null : NOTHING_USED;
    const program = this.#start(selection, known ? { resume: id } : { sessionId: id }, this);
    const running = { program, selection };
    this.#running = running;
    try {
      await program.ready(signal);
      return program;
    } catch (error) {
      // The turn is refused, and the session goes on.
      if (this.#running === running) this.#running = null;
      await program.end();
      throw error;
    }
  }

  #start(
    selection: ClaudeSelection,
    which: Readonly<Record<string, unknown>>,
    listener: ClaudeListener,
  ): ClaudeProgram {
    const { program, input, approvals, nativeAgents } = this.#options;
    const instance = new ClaudeToolServer(input.tools, (call) => this.#called(call));
    return new ClaudeProgram(
      program,
      {
        ...settingsFor(selection, { instructions: input.instructions, nativeAgents }),
        ...which,
        mcpServers: { [TOOL_SERVER]: { type: "sdk", name: TOOL_SERVER, instance } },
        canUseTool: async (
          tool: string,
          given: Readonly<Record<string, unknown>>,
          asked: PermissionAsked & { readonly signal: AbortSignal },
        ) =>
          permit(
            tool,
            given,
            asked,
            approvals,
            async (request) => (await this.#turn?.ask(request, asked.signal)) ?? { kind: "cancelled" },
          ),
      },
      listener,
    );
  }

  async #called({ callId, name, input }: ToolCall): Promise<NativeAnswer> {
    const request = { kind: "tool", ref: refOf(callId), callId, name, input } as const;
    return (await this.#turn?.ask(request)) ?? { kind: "cancelled" };
  }

  async #stop(): Promise<void> {
    const running = this.#running;
    this.#running = null;
    await running?.program.end();
  }

  /** A program that goes back to a message and forgets that at its end, unless there is something behind it. */
  async #goBack(id: string, upTo: string): Promise<void> {
    const note = uuid(systemRandom);
    const { promise: kept, resolve } = Promise.withResolvers<void>();
    const { model, workspace } = this.#options.input;
    const program = this.#start(
      { model, effort: null, effects: [], workspace },
      { resume: id, resumeSessionAt: upTo },
      {
        heard: (message) => {
          if (message.type === "result" && message.user_message_uuids.includes(note)) resolve();
        },
        // Whoever waits for it is told.
        lost: () => undefined,
      },
    );
    try {
      await program.ready();
      program.say({ id: note, content: TAKEN_BACK, asks: false });
      await program.inTime(kept);
    } finally {
      await program.end();
    }
  }
}

const TAKEN_BACK = "[runtime: rolled_back]\nWhat was said after this has been taken back.";

function wordsOf({ preambles, userMessage }: NativeTurnInput): readonly string[] {
  return [...preambles.map(({ text }) => text), userMessage];
}

function nativeThread(id: string, turns: readonly ClaudeTurn[], forkedFrom: NativeRef | null): NativeThread {
  const named = turns.map((turn) => refOf(turn.id));
  return { ref: refOf(id), head: named.at(-1) ?? null, turns: named, forkedFrom };
}

/** A conversation that is not there is no conversation that begins anew. */
function lost(id: string): TransientError {
  return new TransientError("PROVIDER_RESUME_FAILED", `Claude has no conversation ${id}.`, { thread: id });
}

function refused(why: string): RejectedError {
  return new RejectedError("PROVIDER_REFUSED", `Claude refused: ${why}.`, {});
}
