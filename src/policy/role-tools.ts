/**
 * What the keys of a role file say about tools and effects, in our own spelling and in those of Claude and OpenCode.
 * Every key here can only narrow: what is not understood grants nothing.
 *
 * - T1 `tools` is a list of own tools, or null for "as the parent"; `denied` is taken from either; `effects` is a
 *   ceiling, or null.
 * - T2 A list with well-known tools of Claude and none of ours says what the role may do, not which of our tools it has: it
 *   becomes those effects and the tools within them. With one of ours it is both. A name that nobody knows changes nothing.
 * - T3 Who may not start agents there is a leaf here. Claude's name for it is `Task` or `Agent`, OpenCode's `task`. A list of Claude's
 *   tools without it does not allow it.
 * - T4 `*` stands for any letters wherever something is taken away; what gives has to be named, or be `*` for everything.
 */
import { type Effect, EFFECTS, effectsOf } from "../protocol/agent.ts";
import { COLLABORATION_TOOLS, RESULT_TOOLS } from "../protocol/tools-words.ts";
import { type ToolDeclaration, narrow, toolsWithin } from "./effects.ts";

export interface ToolKeys {
  readonly tools?: string | readonly string[] | Readonly<Record<string, boolean>> | null | undefined;
  readonly disallowedTools?: string | readonly string[] | null | undefined;
  readonly effects?: readonly Effect[] | null | undefined;
  readonly permission?: string | Readonly<Record<string, unknown>> | null | undefined;
  readonly permissionMode?: string | null | undefined;
  readonly sandbox_mode?: string | null | undefined;
}

export interface Narrowing {
  readonly tools: readonly string[] | null;
  readonly denied: readonly string[];
  readonly effects: readonly Effect[] | null;
  /** It may not start agents. */
  readonly leaf: boolean;
  /** The keys that set a ceiling, as written: what a profile without such roles reports as ignored. */
  readonly authority: readonly { readonly field: string; readonly asked: string }[];
  readonly warnings: readonly string[];
}

const READ_ONLY: readonly Effect[] = ["read"];
const NO_NETWORK: readonly Effect[] = ["read", "write", "execute"];

/** Tools of Claude whose effect is plain from their name. */
const CLAUDE_TOOLS: Readonly<Record<string, Effect>> = {
  Read: "read",
  Grep: "read",
  Glob: "read",
  LS: "read",
  Edit: "write",
  MultiEdit: "write",
  Write: "write",
  Bash: "execute",
  WebFetch: "network",
  WebSearch: "network",
};

/** Tools and permissions of OpenCode, which are allowed unless switched off. */
const OPENCODE_TOOLS: Readonly<Record<string, Effect>> = {
  read: "read",
  edit: "write",
  write: "write",
  patch: "write",
  bash: "execute",
  webfetch: "network",
  websearch: "network",
};

/** What starts an agent: here, in Claude (by its older name and its newer) and in OpenCode. */
const STARTS_AGENTS: readonly string[] = ["spawn_agent", "Task", "Agent", "task"];

const MODES: Readonly<Record<string, readonly Effect[]>> = {
  plan: READ_ONLY,
  "read-only": READ_ONLY,
  "workspace-write": NO_NETWORK,
  "danger-full-access": EFFECTS,
  bypassPermissions: EFFECTS,
};

/** Modes that only say when somebody is asked, which nobody is. */
const NEUTRAL_MODES = new Set(["default", "acceptEdits", "dontAsk", "auto"]);

/** Reads the keys against the tools that the runtime has. */
export function readToolKeys(keys: ToolKeys, known: readonly ToolDeclaration[]): Narrowing {
  const reader = new Reader(known);
  if (typeof keys.tools === "string") reader.list(splitList(keys.tools));
  else if (isList(keys.tools)) reader.list(keys.tools);
  else if (keys.tools !== null && keys.tools !== undefined) reader.switches(keys.tools);
  if (keys.disallowedTools !== null && keys.disallowedTools !== undefined) {
    const { disallowedTools } = keys;
    for (const name of isList(disallowedTools) ? disallowedTools : splitList(disallowedTools))
      reader.deny(name);
  }
  if (keys.effects !== null && keys.effects !== undefined) {
    reader.ceiling("effects", keys.effects.join(", "), keys.effects);
  }
  reader.mode("permissionMode", keys.permissionMode);
  reader.mode("sandbox_mode", keys.sandbox_mode);
  reader.permission(keys.permission);
  return reader.result();
}

/** Collects what the keys take away. */
class Reader {
  readonly #known: readonly ToolDeclaration[];
  readonly #authority: { field: string; asked: string }[] = [];
  readonly #warnings: string[] = [];
  #tools: readonly string[] | null = null;
  readonly #denied = new Set<string>();
  #effects: readonly Effect[] | null = null;
  #leaf = false;

  constructor(known: readonly ToolDeclaration[]) {
    this.#known = known;
  }

  result(): Narrowing {
    return {
      tools: this.#tools,
      denied: this.#known.map(({ name }) => name).filter((name) => this.#denied.has(name)),
      effects: this.#effects,
      leaf: this.#leaf,
      authority: this.#authority,
      warnings: this.#warnings,
    };
  }

  ceiling(field: string, asked: string, effects: readonly Effect[]): void {
    this.#effects = narrow(this.#effects ?? EFFECTS, effects);
    this.#authority.push({ field, asked });
  }

  list(names: readonly string[]): void {
    if (names.includes("*")) return;
    const foreign = names.filter((name) => !this.#isKnown(name) && Object.hasOwn(CLAUDE_TOOLS, name));
    const own = this.#known.filter(({ name }) => names.includes(name));
    for (const name of names) {
      if (!this.#isKnown(name) && !foreign.includes(name))
        this.#warnings.push(`tools: \`${name}\` is no tool of this runtime and grants nothing`);
    }
    if (foreign.length === 0) {
      this.#tools = own.map(({ name }) => name);
      return;
    }
    if (!names.some((name) => STARTS_AGENTS.includes(name) && this.#startsAgents(name))) this.#leaf = true;
    // The tools of ours among them say for themselves what they need.
    const effects = narrow([...foreign.map((name) => CLAUDE_TOOLS[name]!), ...own.flatMap(effectsOf)]);
    this.ceiling("tools", names.join(", "), effects);
    this.#tools = own.length > 0 ? own.map(({ name }) => name) : toolsWithin(this.#known, effects);
  }

  /** OpenCode's map: a later entry beats an earlier one, `*` stands for any letters. */
  switches(map: Readonly<Record<string, boolean>>): void {
    this.#ceilingOfSwitches(map);
    for (const [pattern, on] of Object.entries(map)) {
      const own = this.#known.map(({ name }) => name).filter((name) => matches(pattern, name));
      if (!on) {
        this.#switchOff(pattern, own);
        continue;
      }
      const starts = this.#startsAgents(pattern);
      if (starts) this.#leaf = false;
      if (own.length > 0) {
        for (const name of own) this.#denied.delete(name);
        if (this.#tools !== null) this.#tools = [...new Set([...this.#tools, ...own])];
      } else if (
        !starts &&
        !this.#isKnown(pattern) &&
        !Object.hasOwn(OPENCODE_TOOLS, pattern) &&
        !pattern.includes("*")
      ) {
        this.#warnings.push(`tools: \`${pattern}\` is no tool of this runtime and grants nothing`);
      }
    }
  }

  /** Where everything is switched off first, what is switched on after is all that is allowed. */
  #ceilingOfSwitches(map: Readonly<Record<string, boolean>>): void {
    const entries = Object.entries(map);
    const from = entries.findLastIndex(([pattern]) => pattern === "*");
    if (from === -1 || entries[from]![1]) return;
    const on = entries.slice(from + 1).flatMap(([pattern, allowed]) => (allowed ? [pattern] : []));
    const effects = on.flatMap((pattern) =>
      Object.hasOwn(OPENCODE_TOOLS, pattern)
        ? [OPENCODE_TOOLS[pattern]!]
        : this.#known.filter(({ name }) => matches(pattern, name)).flatMap(effectsOf),
    );
    this.ceiling("tools", ["*: false", ...on].join(", "), narrow(effects));
  }

  deny(name: string): void {
    const own = this.#known.map((tool) => tool.name).filter((known) => matches(name, known));
    const effects = effectsAt(CLAUDE_TOOLS, name);
    if (own.length > 0 || name === "*" || effects.length === 0) {
      this.#switchOff(name, own);
      return;
    }
    if (this.#startsAgents(name)) this.#leaf = true;
    this.#forbid("disallowedTools", name, effects);
  }

  mode(field: string, mode: string | null | undefined): void {
    if (mode === null || mode === undefined || NEUTRAL_MODES.has(mode)) return;
    if (Object.hasOwn(MODES, mode)) this.ceiling(field, mode, MODES[mode]!);
    else this.#warnings.push(`${field}: \`${mode}\` is not known and has no effect`);
  }

  /** Whatever is not plainly allowed is denied: nobody could be asked. */
  permission(permission: ToolKeys["permission"]): void {
    if (permission === null || permission === undefined) return;
    const entries =
      typeof permission === "string" ? [["*", permission] as const] : Object.entries(permission);
    // Of several that match, the last counts there.
    const starting = entries.findLast(([name]) => matches(name, "task"));
    if (starting !== undefined && starting[1] !== "allow") this.#leaf = true;
    for (const [name, verdict] of entries) {
      if (verdict === "allow") continue;
      if (name === "*") {
        const allowed = entries.flatMap(([other, word]) =>
          word === "allow" && Object.hasOwn(OPENCODE_TOOLS, other) ? [OPENCODE_TOOLS[other]!] : [],
        );
        this.ceiling("permission", `*: ${describe(verdict)}`, allowed);
      }
      const effects = effectsAt(OPENCODE_TOOLS, name);
      if (name !== "*" && effects.length > 0) {
        this.#forbid("permission", `${name}: ${describe(verdict)}`, effects);
      } else if (name !== "*" && !matches(name, "task"))
        this.#warnings.push(`permission: \`${name}\` is not known and changes nothing`);
      if (verdict !== "deny")
        this.#warnings.push(`permission: \`${name}\` cannot be asked for, so it is denied`);
    }
  }

  #switchOff(pattern: string, own: readonly string[]): void {
    if (pattern === "*") this.#tools = [];
    const starts = this.#startsAgents(pattern);
    if (starts) this.#leaf = true;
    const effects = effectsAt(OPENCODE_TOOLS, pattern);
    if (own.length > 0 || pattern === "*") {
      for (const name of own) this.#denied.add(name);
    } else if (effects.length > 0) {
      this.#forbid("tools", `${pattern}: false`, effects);
    } else if (!starts && !this.#isKnown(pattern)) {
      this.#warnings.push(`tools: \`${pattern}\` is no tool of this runtime; nothing is taken away`);
    }
  }

  /** A tool of another program stands for its effect: what has that effect goes as well. */
  #forbid(field: string, asked: string, effects: readonly Effect[]): void {
    const rest = EFFECTS.filter((one) => !effects.includes(one));
    this.ceiling(field, asked, rest);
    const left = toolsWithin(this.#known, rest);
    for (const { name } of this.#known) if (!left.includes(name)) this.#denied.add(name);
  }

  /** A tool of the host's own that happens to have such a name is that tool and nothing else. */
  #startsAgents(pattern: string): boolean {
    return STARTS_AGENTS.some(
      (name) => matches(pattern, name) && !this.#known.some((own) => own.name === name),
    );
  }

  #isKnown(name: string): boolean {
    return (
      STARTS_AGENTS.includes(name) ||
      this.#known.some((tool) => tool.name === name) ||
      COLLABORATION_TOOLS.some((tool) => tool === name) ||
      RESULT_TOOLS.some((tool) => tool === name)
    );
  }
}

/** Of the tools that a name stands for. */
function effectsAt(tools: Readonly<Record<string, Effect>>, pattern: string): readonly Effect[] {
  return Object.entries(tools).flatMap(([name, effect]) => (matches(pattern, name) ? [effect] : []));
}

function isList(value: unknown): value is readonly string[] {
  return Array.isArray(value);
}

function splitList(text: string): string[] {
  return text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

function matches(pattern: string, name: string): boolean {
  const [head = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return pattern === name;
  const last = rest.pop() ?? "";
  if (!name.startsWith(head) || !name.endsWith(last)) return false;
  let at = head.length;
  for (const piece of rest) {
    const found = name.indexOf(piece, at);
    if (found === -1) return false;
    at = found + piece.length;
  }
  return at <= name.length - last.length;
}

function describe(verdict: unknown): string {
  return typeof verdict === "string" ? verdict : JSON.stringify(verdict);
}
