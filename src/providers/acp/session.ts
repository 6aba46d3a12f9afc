/**
 * One agent's session with a program that speaks ACP: its process, its conversation, its place at the bridge, and the turn
 * under way.
 *
 * - X1 The process is the session's own: whatever becomes of one agent's program touches no other.
 * - X2 What the protocol has no way to do is refused by its name, and never left out in silence.
 */
import { RejectedError, TransientError } from "../../protocol/errors.ts";
import type { Json, JsonObject } from "../../protocol/json.ts";
import type { NativeAnswer, NativeEvent, NativeThread } from "../../protocol/native-events.ts";
import type { ThreadCapabilities } from "../../protocol/provider-capabilities.ts";
import type { NativeRef } from "../../protocol/provider-thread.ts";
import { Feed } from "../feed.ts";
import type { ProviderError } from "../json-rpc.ts";
import { type SeatedAgent, stdioServer } from "../mcp-bridge/endpoint.ts";
import { SERVER_NAME } from "../mcp-bridge/seat.ts";
import type { NativePolicy, NativeSession, NativeSessionInput, NativeTurnInput } from "../port.ts";
import { AcpAgent, type AcpAgentOptions, type AcpListener } from "./agent.ts";
import { capabilitiesOf } from "./capabilities.ts";
import type { AcpPolicy } from "./policy.ts";
import { AcpSettings } from "./settings.ts";
import { refOf } from "./translate.ts";
import { AcpTurn } from "./turn.ts";
import type { AcpPermission, AcpUpdate } from "./wire.ts";

export interface AcpSessionOptions {
  readonly agent: AcpAgentOptions;
  readonly input: NativeSessionInput;
  /** Null where the agent has no tools. */
  readonly seated: SeatedAgent | null;
  readonly policyOf: (effects: NativePolicy["effects"]) => AcpPolicy;
}

export class AcpSession implements NativeSession, AcpListener {
  readonly #options: AcpSessionOptions;
  readonly #feed = new Feed<NativeEvent>();
  #agent!: AcpAgent;
  #sessionId: string | null = null;
  #settings: AcpSettings | null = null;
  /** The agent's instructions stand before its first words. */
  #instructed = true;
  #turn: AcpTurn | null = null;
  #gone: ProviderError | null = null;

  private constructor(options: AcpSessionOptions) {
    this.#options = options;
  }

  /** @throws what starting the program fails with. */
  static async open(options: AcpSessionOptions): Promise<AcpSession> {
    const session = new AcpSession(options);
    try {
      session.#agent = await AcpAgent.start(options.agent, options.input.startProcess, session);
    } catch (error) {
      await options.seated?.leave();
      throw error;
    }
    return session;
  }

  get negotiated(): ThreadCapabilities {
    return capabilitiesOf(this.#agent.abilities);
  }

  events(): AsyncIterable<NativeEvent> {
    return this.#feed;
  }

  async ensureThread(): Promise<NativeThread> {
    const opened = await this.#agent.ask("session/new", this.#surroundings());
    this.#take(opened.sessionId, new AcpSettings(this.#agent, opened.sessionId, opened));
    this.#instructed = this.#options.input.instructions === null;
    return threadOf(opened.sessionId);
  }

  async resumeThread({ nativeId: sessionId }: NativeRef): Promise<NativeThread> {
    const { resumes } = this.#agent.abilities;
    if (resumes === null) throw notResumed(sessionId, `${this.#agent.name} takes up no conversation again`);
    try {
      const opened = await this.#agent.ask(resumes, { sessionId, ...this.#surroundings() });
      this.#take(sessionId, new AcpSettings(this.#agent, sessionId, opened ?? {}));
    } catch (error) {
      if (this.#gone !== null) throw error;
      throw notResumed(sessionId, (error as Error).message, error);
    }
    this.#instructed = true;
    return threadOf(sessionId);
  }

  async startTurn(
    input: NativeTurnInput & { readonly policy: NativePolicy; readonly signal: AbortSignal },
  ): Promise<{ readonly turn: null }> {
    if (this.#gone !== null) throw this.#gone;
    if (this.#turn !== null) throw refused("a turn is under way already");
    const { seated, policyOf } = this.#options;
    const { policy, signal, key } = input;
    const { mode, asks } = policyOf(policy.effects);
    await this.#settings?.choose({ mode, model: policy.model, effort: policy.effort });
    signal.throwIfAborted();
    const turn = new AcpTurn({
      key,
      asks,
      agent: this.#agent.name,
      tools: this.#options.input.tools.map(({ name }) => name),
      tell: (event) => this.#feed.push(event),
    });
    this.#turn = turn;
    seated?.seat.beginTurn((request) => turn.called(request));
    const over = this.#follow(turn, this.#words(input));
    await Promise.race([turn.taken, over]);
    this.#instructed = true;
    return { turn: null };
  }

  async interruptTurn(_thread: NativeRef, key: string): Promise<void> {
    const turn = this.#turn;
    if (turn?.key !== key) return;
    // Nothing that it waits for holds it back from ending.
    turn.cancel();
    this.#options.seated?.seat.endTurn();
    await this.#agent.notify("session/cancel", { sessionId: this.#sessionId });
  }

  async respond(request: NativeRef, answer: NativeAnswer): Promise<void> {
    if (this.#turn?.answer(request.nativeId, answer) === true) return;
    const { seated } = this.#options;
    if (seated !== null) return seated.seat.respond(request, answer);
    throw new RejectedError("REQUEST_NOT_RESUMABLE", `nothing waits for an answer to ${request.nativeId}.`, {
      id: request.nativeId,
    });
  }

  async close(): Promise<void> {
    this.#end();
    this.#feed.end();
    await Promise.all([this.#options.seated?.leave(), this.#agent.end()]);
  }

  heard(sessionId: string, update: AcpUpdate): void {
    // A conversation that is loaded is told again, and nobody here has asked for that.
    if (sessionId !== this.#sessionId) return;
    if (update.kind === "current_mode_update") this.#settings?.modeIs(update.of.currentModeId);
    else this.#turn?.heard(update);
  }

  asked(permission: AcpPermission): Promise<Json> {
    const turn = permission.sessionId === this.#sessionId ? this.#turn : null;
    return turn?.asksFor(permission) ?? Promise.resolve({ outcome: { outcome: "cancelled" } });
  }

  lost(error: ProviderError): void {
    this.#gone = error;
    this.#end();
    this.#feed.end(error);
  }

  /** Follows a turn until it is over. @throws what refuses it. */
  async #follow(turn: AcpTurn, prompt: Json): Promise<void> {
    try {
      const asked = this.#agent.ask(
        "session/prompt",
        { sessionId: this.#sessionId, prompt },
        { limit: "none" },
      );
      const answer = await asked;
      this.#over(turn);
      turn.finished(answer);
    } catch (error) {
      this.#over(turn);
      // Its end is told by the end of the events.
      if (this.#gone !== null || !turn.accepted) throw error;
      turn.failed(error as ProviderError);
    }
  }

  #over(turn: AcpTurn): void {
    if (this.#turn === turn) this.#end();
  }

  #end(): void {
    this.#turn?.end();
    this.#turn = null;
    this.#options.seated?.seat.endTurn();
  }

  #take(sessionId: string, settings: AcpSettings): void {
    this.#sessionId = sessionId;
    this.#settings = settings;
  }

  #surroundings(): JsonObject {
    const { agent, seated } = this.#options;
    return { cwd: agent.cwd, mcpServers: seated === null ? [] : [this.#serverOf(seated)] };
  }

  #serverOf(seated: SeatedAgent): JsonObject {
    const pairs = (of: Readonly<Record<string, string>>): Json =>
      Object.entries(of).map(([name, value]) => ({ name, value }));
    if (this.#agent.abilities.http)
      return {
        type: "http",
        name: SERVER_NAME,
        url: seated.url,
        headers: pairs({ Authorization: `Bearer ${seated.token}` }),
      };
    const { command, args, env } = stdioServer(seated);
    return { name: SERVER_NAME, command, args, env: pairs(env) };
  }

  #words({ preambles, userMessage }: NativeTurnInput): Json {
    const { instructions } = this.#options.input;
    const first =
      this.#instructed || instructions === null ? [] : [`Instructions for you:\n\n${instructions}`];
    return [...first, ...preambles.map(({ text }) => text), userMessage].map((text) => ({
      type: "text",
      text,
    }));
  }
}

function threadOf(sessionId: string): NativeThread {
  return { ref: refOf(sessionId, "strong"), head: null, turns: null, forkedFrom: null };
}

function notResumed(sessionId: string, why: string, cause?: unknown): TransientError {
  return new TransientError("PROVIDER_RESUME_FAILED", `${why}.`, { thread: sessionId }, { cause });
}

function refused(why: string): RejectedError {
  return new RejectedError("PROVIDER_REFUSED", `The agent refused: ${why}.`, {});
}
