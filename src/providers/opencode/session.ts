/**
 * One agent's session with OpenCode: its conversation in the tree's server, the turn under way, its tools of ours, and what is
 * asked of it.
 *
 * - X1 A prompt during a turn would join it, and both would end with one answer: none is sent before the turn is over.
 * - X2 Servers of tools are listed by folder, for all conversations there. Each agent's has a name of its own, and rules keep all
 *   others from it; its token is what tells who calls (SEC-1).
 * - X3 Two servers on one conversation know nothing of one another: the tree's lease is what keeps them apart. Within one server
 *   a turn of somebody else's is noticed.
 * - X4 A conversation on a server that somebody else runs is bound to its address.
 */
import { type Clock, within } from "../../platform/clock.ts";
import { sha256 } from "../../platform/digest.ts";
import type { Random } from "../../platform/ids.ts";
import type { JsonObject } from "../../protocol/json.ts";
import type {
  NativeAnswer,
  NativeEvent,
  NativeHistoryPage,
  NativeThread,
} from "../../protocol/native-events.ts";
import type { ThreadCapabilities } from "../../protocol/provider-capabilities.ts";
import type { NativeRef } from "../../protocol/provider-thread.ts";
import { Feed } from "../feed.ts";
import type { HeldServer } from "../held-servers.ts";
import type { ProviderError } from "../json-rpc.ts";
import type { SeatedAgent } from "../mcp-bridge/endpoint.ts";
import { SERVER_NAME } from "../mcp-bridge/seat.ts";
import type {
  NativeForkInput,
  NativePolicy,
  NativeRollbackInput,
  NativeSession,
  NativeSessionInput,
} from "../port.ts";
import {
  busy,
  closed,
  isAnswer,
  isNotThere,
  isStalled,
  notResumed,
  notTaken,
  notWaitedFor,
  refused,
} from "./failures.ts";
import { OpenCodeDirectoryClient } from "./directory-client.ts";
import { firstRemoved, historyOf, nativeThread, type OpenCodeTurnSaid } from "./history.ts";
import {
  type OpenCodeApprovals,
  type OpenCodePolicy,
  type OpenCodeRule,
  policyOf,
  stillInForce,
} from "./policy.ts";
import { GRACE_MS, type OpenCodeListener, type OpenCodeServer } from "./server.ts";
import { messageIdAfter, modelOf, refOf } from "./translate.ts";
import { OpenCodeTurn } from "./turn.ts";
import type { OpenCodeEvent, OpenCodeRecord } from "./wire.ts";

export interface OpenCodeSessionOptions {
  readonly held: HeldServer<OpenCodeServer>;
  readonly input: NativeSessionInput;
  readonly directory: string;
  /** Null where the agent has no tools. */
  readonly seated: SeatedAgent | null;
  readonly approvals: OpenCodeApprovals;
  readonly capabilities: ThreadCapabilities;
  readonly clock: Clock;
  /** Milliseconds in which a turn has to be taken. */
  readonly deadlineMs: number;
  readonly random: Random;
}

type TurnInput = Parameters<NativeSession["startTurn"]>[0];

/** Beyond the time for which a call is held. */
const SPARE_MS = 30_000;

export class OpenCodeSession implements NativeSession, OpenCodeListener {
  readonly negotiated: ThreadCapabilities;
  readonly #options: OpenCodeSessionOptions;
  readonly #directory: OpenCodeDirectoryClient;
  readonly #feed = new Feed<NativeEvent>();
  /** Under which its tools of ours are listed. */
  readonly #name: string;
  #sessionId: string | null = null;
  #lastMessage: string | null = null;
  /** All that its conversation has, the oldest first. */
  #rules: readonly OpenCodeRule[] = [];
  #offered = false;
  /** Of the settings, for turns that name none. */
  #defaultModel: string | null = null;
  #turn: OpenCodeTurn | null = null;
  #gone: ProviderError | null = null;
  #closed = false;

  constructor(options: OpenCodeSessionOptions) {
    this.#options = options;
    this.negotiated = options.capabilities;
    this.#directory = new OpenCodeDirectoryClient(options.held.server.client, options.directory);
    this.#name = `${SERVER_NAME}_${sha256(options.input.threadId).slice(0, 8)}`;
  }

  get #server(): OpenCodeServer {
    return this.#options.held.server;
  }

  events(): AsyncIterable<NativeEvent> {
    return this.#feed;
  }

  async ensureThread(): Promise<NativeThread> {
    const { input } = this.#options;
    const { rules } = this.#policy(input.effects);
    await this.#prepare();
    // With a title of its own no model is asked for one.
    const { id } = await this.#directory.create(`Coppice ${input.path}`, rules);
    this.#rules = rules;
    return this.#take(id, [], null);
  }

  async resumeThread(ref: NativeRef): Promise<NativeThread> {
    const { client, boundTo } = this.#server;
    const at = ref.fingerprint ?? null;
    if (at !== boundTo)
      throw notResumed(
        ref,
        `it is on ${at ?? "a server of the runtime's own"}, and ${client.url} is used now`,
      );
    try {
      await this.#begin(ref, await this.#directory.find(ref));
      return this.#take(ref.nativeId, await this.#directory.turnsOf(ref), null);
    } catch (error) {
      throw isAnswer(error) ? notResumed(ref, error.message, error) : error;
    }
  }

  async startTurn(input: TurnInput): Promise<{ readonly turn: NativeRef }> {
    if (this.#gone !== null) throw this.#gone;
    if (this.#turn !== null) throw refused("a turn is under way already");
    const { thread, policy, signal } = input;
    const { rules, asks } = this.#policy(policy.effects);
    const body = this.#prompt(input);
    const turn = this.#turnOf(input, asks);
    this.#turn = turn;
    try {
      if (await this.#directory.isBusy(thread)) throw busy(thread);
      await this.#rule(thread, rules);
      signal.throwIfAborted();
      if (this.#closed) throw closed();
      this.#options.seated?.seat.beginTurn((request) => turn.called(request));
      turn.sending();
      await this.#directory.prompt(thread, { ...body, messageID: turn.id });
      turn.sent();
      this.#known(turn.id);
      await this.#taken(turn);
      return { turn: refOf(turn.id) };
    } catch (error) {
      // It may begin with it all the same, and nobody would hear of it. The next one waits for this: it would be what is stopped.
      if (turn.isSending && isStalled(error))
        await this.#directory.abort(thread, GRACE_MS).catch(() => undefined);
      this.#end(turn);
      throw this.#gone ?? error;
    }
  }

  async interruptTurn(_thread: NativeRef, key: string): Promise<void> {
    if (this.#turn?.key === key) await this.#stop(this.#turn);
  }

  async respond(request: NativeRef, answer: NativeAnswer): Promise<void> {
    const { nativeId } = request;
    try {
      if ((await this.#turn?.answer(nativeId, answer)) === true) return;
    } catch (error) {
      throw isNotThere(error) ? notWaitedFor(nativeId) : error;
    }
    const { seated } = this.#options;
    if (seated === null) throw notWaitedFor(nativeId);
    return seated.seat.respond(request, answer);
  }

  async forkThread({ source, boundary, turns, signal }: NativeForkInput): Promise<NativeThread> {
    const first = firstRemoved(boundary, await this.#directory.turnsOf(source), turns);
    const record = await this.#directory.fork(source, first, signal);
    const fork = this.#refOf(record.id);
    // It has none of the rules of its source.
    await this.#begin(fork, record);
    return this.#take(record.id, await this.#directory.turnsOf(fork), source);
  }

  /** By taking its messages away: OpenCode's own way back would put back files, too. */
  async rollbackThread({ thread, boundary, turns }: NativeRollbackInput): Promise<NativeThread> {
    const there = await this.#directory.turnsOf(thread);
    const first = firstRemoved(boundary, there, turns);
    const goes = first === null ? [] : there.slice(there.findIndex(({ id }) => id === first));
    // From the newest on, so that a crash leaves a conversation that is whole up to its end.
    for (const { info } of goes.flatMap(({ said }) => said).toReversed())
      await this.#directory.removeMessage(thread, info.id);
    return nativeThread(thread, await this.#directory.turnsOf(thread), null);
  }

  async readThread(thread: NativeRef): Promise<NativeHistoryPage> {
    const [turns, isBusy] = await Promise.all([
      this.#directory.turnsOf(thread),
      this.#directory.isBusy(thread),
    ]);
    return historyOf(turns, isBusy);
  }

  async close(): Promise<void> {
    const { held, seated, clock } = this.#options;
    const turn = this.#turn;
    const sessionId = this.#sessionId;
    this.#sessionId = null;
    this.#closed = true;
    this.#feed.end();
    // Others may go on to use the server.
    if (turn !== null && this.#gone === null) await within(clock, GRACE_MS, this.#stop(turn));
    if (turn !== null) {
      this.#end(turn);
      turn.lost(closed());
    }
    if (sessionId !== null) this.#server.leave(sessionId, this);
    if (this.#offered && this.#gone === null)
      await this.#directory.withdraw(this.#name, GRACE_MS).catch(() => undefined);
    await Promise.all([seated?.leave(), held.release()]);
  }

  heard(event: OpenCodeEvent): void {
    if (event.type === "message.updated") this.#known(event.of.info.id);
    this.#turn?.heard(event);
  }

  lost(error: ProviderError): void {
    this.#gone = error;
    const turn = this.#turn;
    if (turn !== null) {
      this.#end(turn);
      turn.lost(error);
    }
    this.#feed.end(error);
  }

  #turnOf({ key, thread }: TurnInput, asks: boolean): OpenCodeTurn {
    const { clock, random } = this.#options;
    const turn = new OpenCodeTurn({
      key,
      id: messageIdAfter(this.#lastMessage, clock.now(), random),
      asks,
      toolPrefix: `${this.#name}_`,
      tell: (event) => this.#feed.push(event),
      reply: async ({ path, body }) => void (await this.#directory.post(path, body)),
      stop: () => this.#directory.abort(thread),
      onEnded: () => this.#end(turn),
      server: this.#server,
    });
    return turn;
  }

  async #taken(turn: OpenCodeTurn): Promise<void> {
    const { clock, deadlineMs } = this.#options;
    const timer = clock.setTimer(deadlineMs, () => turn.lost(notTaken(deadlineMs)));
    try {
      await turn.taken;
    } finally {
      timer.cancel();
    }
  }

  #stop(turn: OpenCodeTurn): Promise<void> {
    this.#options.seated?.seat.endTurn();
    return turn.interrupt();
  }

  #end(turn: OpenCodeTurn): void {
    if (this.#turn !== turn) return;
    turn.end();
    this.#turn = null;
    this.#options.seated?.seat.endTurn();
  }

  /** Makes a conversation that is there this agent's. */
  async #begin(thread: NativeRef, { permission }: OpenCodeRecord): Promise<void> {
    const { rules } = this.#policy(this.#options.input.effects);
    await this.#prepare();
    this.#rules = permission ?? [];
    await this.#rule(thread, rules);
  }

  #take(id: string, turns: readonly OpenCodeTurnSaid[], forkedFrom: NativeRef | null): NativeThread {
    if (this.#sessionId !== null) this.#server.leave(this.#sessionId, this);
    this.#sessionId = id;
    this.#lastMessage = null;
    for (const { info } of turns.flatMap(({ said }) => said)) this.#known(info.id);
    this.#server.listen(id, this);
    return nativeThread(this.#refOf(id), turns, forkedFrom);
  }

  #known(messageId: string): void {
    if (this.#lastMessage === null || messageId > this.#lastMessage) this.#lastMessage = messageId;
  }

  /** What its turns need beside its conversation: the model that it has unless another is named, and its tools of ours. */
  async #prepare(): Promise<void> {
    this.#defaultModel ??= await this.#directory.defaultModel();
    const { seated, input } = this.#options;
    if (seated === null || this.#offered) return;
    const { url, token } = seated;
    await this.#directory.offer({
      name: this.#name,
      url,
      token,
      timeoutMs: input.transportWaitMs + SPARE_MS,
    });
    this.#offered = true;
  }

  #policy(effects: NativePolicy["effects"]): OpenCodePolicy {
    const { approvals, capabilities } = this.#options;
    const seat = { server: this.#name, nativeAgents: capabilities.subagents.native };
    return policyOf(effects, approvals, seat);
  }

  /** Rules cannot be taken back: where they do not take the place of all that are there, the conversation is not used. */
  async #rule(thread: NativeRef, rules: readonly OpenCodeRule[]): Promise<void> {
    const old = stillInForce(this.#rules, rules);
    if (old !== null)
      throw notResumed(
        thread,
        `its rule "${old.action} ${old.permission}" was made under other effects or approvals, and OpenCode cannot take it back`,
      );
    const last = this.#rules.slice(-rules.length);
    if (JSON.stringify(last) === JSON.stringify(rules)) return;
    await this.#directory.addRules(thread, rules);
    this.#rules = [...this.#rules, ...rules];
  }

  #prompt({ preambles, userMessage, policy }: TurnInput): JsonObject {
    const { instructions } = this.#options.input;
    const model = policy.model ?? this.#defaultModel;
    return {
      parts: [...preambles.map(({ text }) => text), userMessage].map((text) => ({ type: "text", text })),
      ...(instructions === null ? {} : { system: instructions }),
      // Left out, the one of the turn before would go on.
      ...(model === null ? {} : { model: modelOf(model) }),
      ...(policy.effort === null ? {} : { variant: policy.effort }),
    };
  }

  #refOf(id: string): NativeRef {
    const { boundTo } = this.#server;
    return boundTo === null ? refOf(id) : { ...refOf(id), fingerprint: boundTo };
  }
}
