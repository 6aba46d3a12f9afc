/** A provider with a loop of its own whose turns a test plays by hand: what it tells, asks, and how it is stopped. */
import { RejectedError } from "../../src/protocol/errors.ts";
import type { NativeAnswer, NativeEvent, NativeRequest } from "../../src/protocol/native-events.ts";
import type { NativeRef } from "../../src/protocol/provider-thread.ts";
import type { NativeAdapter, NativeSession, NativeTurnInput } from "../../src/providers/port.ts";
import { Feed } from "../../src/providers/feed.ts";
import { turnForkRow } from "../../src/providers/scripted/native/rows.ts";

type Told<T> = T extends unknown ? Omit<T, "key"> : never;
type Terminal = Extract<NativeEvent, { type: "turn.terminal" }>;

export const puppetRef = (nativeId: string): NativeRef => ({
  driver: "puppet",
  nativeId,
  strength: "strong",
});

/** One turn, as its player has it. */
export interface PuppetTurn {
  readonly input: NativeTurnInput;
  readonly session: number;
  /** Aborted when the turn is stopped. */
  readonly stopped: AbortSignal;
  readonly tell: (event: Told<NativeEvent>) => void;
  readonly say: (text: string) => void;
  readonly ask: (request: NativeRequest) => Promise<NativeAnswer>;
  /** A call of a tool of ours. */
  readonly call: (id: string, name: string, input: object) => Promise<NativeAnswer>;
}

/** What the turn ends with; completed and without figures unless it says otherwise. */
type Player = (turn: PuppetTurn) => Promise<Partial<Pick<Terminal, "outcome" | "usage">> | void>;

export interface PuppetOptions {
  /** In place of methods of a session, by its number. */
  readonly session?: (number: number) => Partial<NativeSession>;
  /** Answers that it does not wait for any more. */
  readonly refuses?: (ref: NativeRef) => boolean;
  readonly change?: NativeAdapter["classifySelectionChange"];
}

export interface Puppet extends NativeAdapter {
  /** What it was asked for, in order: `open 1`, `close 1`, `closed 1`, `turn 1`, … */
  readonly log: string[];
}

export function puppet(play: Player, options: PuppetOptions = {}): Puppet {
  const { capabilities } = turnForkRow({});
  const log: string[] = [];
  let sessions = 0;
  const thread = { ref: puppetRef("conversation"), head: null, turns: null, forkedFrom: null };
  return {
    loop: "theirs",
    driver: "puppet",
    defaultModel: "m",
    log,
    models: () => null,
    capabilities: async () => capabilities,
    effectiveEffects: (effects) => effects,
    classifySelectionChange: options.change ?? (() => "apply_next_turn"),
    async openSession({ model }) {
      const number = (sessions += 1);
      log.push(`open ${number} ${model}`);
      const feed = new Feed<NativeEvent>();
      const asked = new Map<string, (answer: NativeAnswer) => void>();
      let stop = new AbortController();
      const overrides = options.session?.(number) ?? {};
      return {
        negotiated: capabilities,
        events: () => feed,
        ensureThread: async () => thread,
        resumeThread: async (ref) => ({ ...thread, ref }),
        async startTurn(input) {
          log.push(`turn ${number}`);
          stop = new AbortController();
          const tell: PuppetTurn["tell"] = (event) => feed.push({ ...event, key: input.key } as NativeEvent);
          tell({ type: "turn.accepted", turn: null });
          const ask: PuppetTurn["ask"] = (request) =>
            new Promise((resolve) => {
              asked.set(request.ref.nativeId, resolve);
              tell({ type: "request", request });
            });
          const ended = play({
            input,
            session: number,
            stopped: stop.signal,
            tell,
            say: (text) => tell({ type: "item", item: { kind: "text", text, ref: null } }),
            ask,
            call: (id, name, given) =>
              ask({ kind: "tool", ref: puppetRef(id), callId: "call_0", name, input: JSON.stringify(given) }),
          });
          void ended.then((end) => {
            const outcome = stop.signal.aborted ? "interrupted" : "completed";
            tell({ type: "turn.terminal", outcome, turn: null, usage: null, error: null, ...end });
          });
          return { turn: null };
        },
        async interruptTurn() {
          log.push(`stop ${number}`);
          stop.abort();
        },
        async respond(ref, answer) {
          if (options.refuses?.(ref) === true)
            throw new RejectedError("REQUEST_NOT_RESUMABLE", "nobody waits for it.", {});
          const answered = asked.get(ref.nativeId);
          asked.delete(ref.nativeId);
          answered?.(answer);
        },
        ...overrides,
        async close() {
          log.push(`close ${number}`);
          await overrides.close?.();
          feed.end();
          log.push(`closed ${number}`);
        },
      };
    },
  };
}
