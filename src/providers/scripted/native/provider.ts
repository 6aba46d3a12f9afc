/**
 * Six scripted providers that own their loop (lineage 3.3): one engine, a row of capabilities and a translator of boundaries
 * each. Their scripts have the words of `scripted`; what they are asked is recorded, and each method can be told to fail.
 *
 * - Their conversations outlive them when they are given: another adapter with the same ones resumes what was left.
 */
import { type Clock, systemClock } from "../../../platform/clock.ts";
import type { NativeRef } from "../../../protocol/provider-thread.ts";
import type { ModelInfo, NativeAdapter, NativeSession } from "../../port.ts";
import { isDriverOf } from "../../native-call.ts";
import { createGates, type Gates } from "../gates.ts";
import { compile, type Program } from "../program.ts";
import type { Script } from "../script.ts";
import { createNativeConversations, type NativeConversations } from "./conversations.ts";
import { Faults, type NativeCall, type NativeFault, type NativeMethod } from "./faults.ts";
import {
  EXCLUSIVE_FORK,
  HEAD_FORK,
  ITEM_FORK,
  MUTE,
  type NativeRow,
  NO_FORK,
  type TurnForkOptions,
  turnForkRow,
} from "./rows.ts";
import { ScriptedNativeSession } from "./session.ts";
import { Wire, type WireCall } from "./wire.ts";

/** Options of the six. */
export interface ScriptedNativeOptions {
  readonly clock?: Clock;
  readonly gates?: Gates;
  /** Where its conversations are kept; its own unless given. */
  readonly conversations?: NativeConversations;
  readonly instanceId?: string;
  readonly models?: Readonly<Record<string, ModelInfo>>;
  readonly defaultModel?: string;
  /** What a change of settings takes; by its capabilities unless given. */
  readonly selectionChange?: NativeAdapter["classifySelectionChange"];
  /** What its agents can do in fact; what they were given, unless said otherwise. */
  readonly effectiveEffects?: NativeAdapter["effectiveEffects"];
}

/** A scripted provider that owns its loop, and what a test asks and tells it. */
export interface ScriptedNativeProvider extends NativeAdapter {
  readonly gates: Gates;
  readonly conversations: NativeConversations;
  /** What it was asked for, oldest first; of one method where it is named. */
  calls(method?: NativeMethod): readonly NativeCall[];
  /** The native calls that forks and rollbacks became. */
  wire(): readonly WireCall[];
  /** The next calls of a method go wrong, one unless more are given. */
  fault(method: NativeMethod, fault: NativeFault, times?: number): void;
  /** Its conversation is gone. */
  lose(thread: Pick<NativeRef, "nativeId">): void;
  /** All its sessions die, as a killed process would; it can be opened again. */
  kill(): void;
}

type Scripts = Readonly<Record<string, Script>>;

const ANY = "*";

/** What the sessions of one adapter share. */
export class Provider {
  readonly row: NativeRow;
  readonly clock: Clock;
  readonly gates: Gates;
  readonly conversations: NativeConversations;
  readonly wire: Wire;
  readonly faults = new Faults();
  readonly calls: NativeCall[] = [];
  readonly #programs: ReadonlyMap<string, Program>;
  readonly #open = new Set<ScriptedNativeSession>();

  constructor(row: NativeRow, scripts: Scripts, options: ScriptedNativeOptions) {
    this.row = row;
    this.clock = options.clock ?? systemClock;
    this.gates = options.gates ?? createGates();
    this.conversations = options.conversations ?? createNativeConversations();
    this.wire = new Wire({ driver: row.driver, history: row.history, conversations: this.conversations });
    this.#programs = new Map(Object.entries(scripts).map(([path, script]) => [path, compile(path, script)]));
  }

  programOf(path: string): Program {
    return this.#programs.get(path) ?? this.#programs.get(ANY) ?? compile(path, []);
  }

  offers(method: "forkThread" | "rollbackThread" | "readThread" | "findForks" | "steerTurn"): boolean {
    const { translator, capabilities } = this.row;
    switch (method) {
      case "forkThread":
      case "findForks":
        return translator.fork !== null;
      case "rollbackThread":
        return translator.rollback !== null;
      case "readThread":
        return capabilities.threads.read !== "none";
      case "steerTurn":
        return capabilities.turns.steer;
    }
  }

  knows(driver: string): boolean {
    return isDriverOf(this.row, driver);
  }

  note(method: NativeMethod, path: string, input: unknown): NativeFault | undefined {
    this.calls.push({ method, path, input });
    return this.faults.take(method);
  }

  async open(input: Parameters<NativeAdapter["openSession"]>[0]): Promise<NativeSession> {
    const fault = this.note("openSession", input.path, input);
    if (fault?.kind === "refuse") throw fault.error;
    if (fault?.kind === "hang") await this.gates.pass(fault.gate);
    const session = new ScriptedNativeSession(this, input);
    this.#open.add(session);
    return session;
  }

  gone(session: ScriptedNativeSession): void {
    this.#open.delete(session);
  }

  kill(): void {
    for (const session of this.#open) session.die();
  }
}

function scriptedNative(
  row: NativeRow,
  scripts: Scripts,
  options: ScriptedNativeOptions,
): ScriptedNativeProvider {
  const provider = new Provider(row, scripts, options);
  const models = options.models ?? null;
  return {
    loop: "theirs",
    driver: row.driver,
    aliases: row.aliases,
    ...(options.instanceId !== undefined && { instanceId: options.instanceId }),
    defaultModel: options.defaultModel ?? Object.keys(models ?? {})[0] ?? row.driver,
    models: () => models,
    capabilities: async () => row.capabilities,
    effectiveEffects: options.effectiveEffects ?? ((effects) => effects),
    classifySelectionChange(current, next) {
      if (options.selectionChange !== undefined) return options.selectionChange(current, next);
      if (next.model === current.model) return "apply_next_turn";
      return row.capabilities.sessions.modelSwitch ? "apply_next_turn" : "restart_session";
    },
    openSession: (input) => provider.open(input),
    gates: provider.gates,
    conversations: provider.conversations,
    calls: (method) => provider.calls.filter((call) => method === undefined || call.method === method),
    wire: () => [...provider.wire.sent],
    fault: (method, fault, times = 1) => provider.faults.add(method, fault, times),
    lose({ nativeId }) {
      const found = provider.conversations.find(row.driver, nativeId);
      if (found !== undefined) found.lost = true;
    },
    kill: () => provider.kill(),
  };
}

/** Turns are named and inclusive; rolls back by count (legacy history) or reverts (paginated). */
export function turnFork(scripts: Scripts, options: ScriptedNativeOptions & TurnForkOptions = {}) {
  return scriptedNative(turnForkRow(options), scripts, options);
}

/** Messages are named and inclusive, turns hardly; its history cannot be read. */
export function itemFork(scripts: Scripts, options: ScriptedNativeOptions = {}) {
  return scriptedNative(ITEM_FORK, scripts, options);
}

/** Messages are named and exclusive: the one given is the first that is left out. */
export function exclusiveFork(scripts: Scripts, options: ScriptedNativeOptions = {}) {
  return scriptedNative(EXCLUSIVE_FORK, scripts, options);
}

/** Forks as a whole, and never rolls back. */
export function headFork(scripts: Scripts, options: ScriptedNativeOptions = {}) {
  return scriptedNative(HEAD_FORK, scripts, options);
}

/** Neither forks nor rolls back. */
export function noFork(scripts: Scripts, options: ScriptedNativeOptions = {}) {
  return scriptedNative(NO_FORK, scripts, options);
}

/** Takes the user's message and no context beside it. */
export function mute(scripts: Scripts, options: ScriptedNativeOptions = {}) {
  return scriptedNative(MUTE, scripts, options);
}
