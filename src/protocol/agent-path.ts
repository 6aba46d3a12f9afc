/**
 * Agent paths (SPN-1; agents.md 1-8): absolute `/root` or `/root/<segment>(/<segment>)*`, a segment is `[a-z0-9_]+`.
 * Parsing is pure; whether a path names a living agent is the store's answer.
 */
import { RejectedError } from "./errors.ts";

/** Where an agent stands in its tree. */
export type AgentPath = `/root${string}`;
export const ROOT_PATH: AgentPath = "/root";
const SEGMENT = /^[a-z0-9_]+$/;

/** Checks a `task_name` and returns it; each kind of fault has its own text (agents.md 2). */
export function parseTaskName(name: string): string {
  const refuse = (reason: string): never => {
    throw new RejectedError("INVALID_ARGUMENT", reason, { argument: "task_name", value: clip(name) });
  };
  if (name === "")
    refuse("task_name is empty; use lowercase letters, digits and underscores, such as `review_api`.");
  if (name === "root") refuse("task_name `root` is reserved for the root agent; choose another name.");
  if (name === "." || name === "..")
    refuse(`task_name \`${name}\` is reserved; paths have no relative steps.`);
  if (name.includes("/")) refuse("task_name must be one segment and may not contain `/`.");
  if (!SEGMENT.test(name)) {
    refuse(`task_name may only hold lowercase letters, digits and underscores, not \`${strangerIn(name)}\`.`);
  }
  return name;
}

export function childPath(parent: AgentPath, name: string): AgentPath {
  return `${parent}/${name}`;
}

export function parentPath(path: AgentPath): AgentPath | null {
  return path === ROOT_PATH ? null : (path.slice(0, path.lastIndexOf("/")) as AgentPath);
}

export function depthOf(path: AgentPath): number {
  let depth = -1;
  for (const character of path) if (character === "/") depth += 1;
  return depth;
}

/** True when `path` is `ancestor` or lies below it. */
export function isWithin(path: AgentPath, ancestor: AgentPath): boolean {
  return path === ancestor || path.startsWith(`${ancestor}/`);
}

/**
 * The branch of the root that an agent belongs to: its first segment below `/root`, or `/root` itself. Fairness between
 * branches (EXE-3) counts by it.
 */
export function branchOf(path: AgentPath): AgentPath {
  const end = path.indexOf("/", ROOT_PATH.length + 1);
  return end === -1 ? path : (path.slice(0, end) as AgentPath);
}

/**
 * Resolves a reference as a caller at `caller` means it: absolute, or relative to the caller and below it, never to a
 * sibling (agents.md 3, 5).
 * @throws RejectedError `INVALID_ARGUMENT` that names the fault.
 */
export function resolveReference(caller: AgentPath, reference: string, argument = "target"): AgentPath {
  const refuse = (reason: string): never => {
    throw new RejectedError("INVALID_ARGUMENT", reason, { argument, value: clip(reference) });
  };
  if (reference === "")
    refuse(`${argument} is empty; give a path such as \`/root/worker\` or the name of a child.`);
  const absolute = reference.startsWith("/");
  if (reference.endsWith("/")) refuse(`${argument} may not end with \`/\`.`);
  const segments = (absolute ? reference.slice(1) : reference).split("/");
  if (absolute && segments[0] !== "root") refuse(`${argument} is absolute and must start with \`/root\`.`);
  const rest = absolute ? segments.slice(1) : segments;
  for (const segment of rest) {
    if (segment === "." || segment === "..")
      refuse(`${argument} may have no relative steps; \`.\` and \`..\` are not paths.`);
    if (segment === "root")
      refuse(`${argument} holds \`root\`, which is reserved; the root agent is \`/root\`.`);
    if (!SEGMENT.test(segment)) {
      refuse(
        segment === ""
          ? `${argument} lacks a name between two \`/\`.`
          : `${argument} may only hold lowercase letters, digits and underscores between its \`/\`, not \`${strangerIn(segment)}\`.`,
      );
    }
  }
  const base = absolute ? ROOT_PATH : caller;
  return (rest.length === 0 ? base : `${base}/${rest.join("/")}`) as AgentPath;
}

/** The first character that no segment may hold. */
function strangerIn(text: string): string {
  return /[^a-z0-9_]/u.exec(text)?.[0] ?? "";
}

function clip(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
