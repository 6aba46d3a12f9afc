/**
 * What an agent may do to the world, in the words of OpenCode (POL-2): rules of its permissions, of which the last that fits
 * holds. A tool that is denied altogether is not offered either.
 *
 * - C1 An agent of less than all effects has what its effects name and nothing else: no servers of tools, custom tools or skills
 *   of its user's, and no file outside of its workspace.
 * - C2 Nothing is asked for then: a yes would widen the policy.
 * - C3 Its commands know no sandbox, so that `execute` takes all effects.
 * - C4 Agents of its own are there only where the host has turned them on, and of the tools of ours those of this agent alone.
 * - C5 A conversation's rules can only be added to. What was allowed before stays so unless a later rule holds in its place.
 */
import { type Effect, EFFECTS } from "../../protocol/agent.ts";
import { SERVER_NAME } from "../mcp-bridge/seat.ts";

/** Which calls ask first where all effects are given. */
export type OpenCodeApprovals = "never" | "on-request" | "untrusted";

export interface OpenCodeRule {
  readonly permission: string;
  readonly pattern: string;
  readonly action: "allow" | "ask" | "deny";
}

export interface OpenCodePolicy {
  readonly rules: readonly OpenCodeRule[];
  readonly asks: boolean;
}

const TOOLS: Readonly<Record<Exclude<Effect, "execute">, readonly string[]>> = {
  read: ["read", "glob", "grep", "list"],
  write: ["edit"],
  network: ["webfetch", "websearch", "codesearch"],
};
/** They touch nothing but the conversation. */
const HARMLESS = ["question", "todowrite", "todoread"];

export function hasAll(effects: readonly Effect[]): boolean {
  return EFFECTS.every((one) => effects.includes(one));
}

/** `narrows`: nothing of the user's settings acts by itself, and no agents of its own do. */
export function effectiveEffects(effects: readonly Effect[], narrows: boolean): readonly Effect[] {
  return narrows && !effects.includes("execute") ? effects : EFFECTS;
}

/** What its conversation has beside its effects. */
export interface OpenCodeSeat {
  /** The name under which the agent's own tools of ours are listed. */
  readonly server: string;
  /** Agents of OpenCode's own are on. */
  readonly nativeAgents: boolean;
}

export function policyOf(
  effects: readonly Effect[],
  approvals: OpenCodeApprovals,
  { server, nativeAgents }: OpenCodeSeat,
): OpenCodePolicy {
  const all = hasAll(effects);
  const own = all ? APPROVALS[approvals] : [...rules("deny", ["*"]), ...rules("allow", allowedBy(effects))];
  return {
    asks: all && approvals !== "never",
    rules: [
      ...own,
      // A rule for either, so that one of the other kind does not stay in force.
      ...rules(nativeAgents ? "allow" : "deny", ["task"]),
      ...rules("deny", [`${SERVER_NAME}_*`]),
      ...rules("allow", [`${server}_*`]),
    ],
  };
}

/** The first rule of a conversation that would still hold with `rules` behind it; null when they take the place of all. */
export function stillInForce(
  there: readonly OpenCodeRule[],
  rules: readonly OpenCodeRule[],
): OpenCodeRule | null {
  return there.find((old) => !rules.some((rule) => covers(rule, old))) ?? null;
}

function covers({ permission, pattern }: OpenCodeRule, old: OpenCodeRule): boolean {
  if (pattern !== "*") return false;
  return (
    permission === old.permission ||
    (permission.endsWith("*") && old.permission.startsWith(permission.slice(0, -1)))
  );
}

function allowedBy(effects: readonly Effect[]): readonly string[] {
  return [...HARMLESS, ...effects.flatMap((one) => (one === "execute" ? [] : TOOLS[one]))];
}

function rules(action: OpenCodeRule["action"], permissions: readonly string[]): OpenCodeRule[] {
  return permissions.map((permission) => ({ permission, pattern: "*", action }));
}

const APPROVALS: Readonly<Record<OpenCodeApprovals, readonly OpenCodeRule[]>> = {
  never: rules("allow", ["*"]),
  // As its settings say.
  "on-request": [],
  untrusted: [...rules("ask", ["*"]), ...rules("allow", [...TOOLS.read, ...HARMLESS, "skill"])],
};
