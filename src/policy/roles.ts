/**
 * The roles of a runtime: the built-in ones and those of role files, by name. A file's role shadows a built-in one of
 * the same name, and so does a broken file: whoever wrote it meant something else than the built-in.
 */
import { z } from "zod";
import { RejectedError } from "../protocol/errors.ts";
import { check, clip } from "../platform/check.ts";
import type { ToolDeclaration } from "./effects.ts";
import type { RoleFolder } from "./role-folder.ts";
import { nameOfFile, parseRoleFile, type Role, type RoleFile, roleFault } from "./role-file.ts";

/** Roles by name, from `loadRoles`. */
export interface RoleSet {
  readonly roles: ReadonlyMap<string, Role>;
  /** Names that a file holds but that cannot be used, with the reason. */
  readonly unavailable: ReadonlyMap<string, string>;
  /** One for each file that could not be read. */
  readonly faults: readonly RejectedError[];
  readonly warnings: readonly string[];
}

const builtIn = (name: string, description: string, instructions: string | null): Role => ({
  name,
  description,
  instructions,
  model: null,
  effort: null,
  tools: null,
  denied: [],
  effects: null,
  leaf: false,
  authority: [],
  ignored: [],
  source: "built-in",
});

export const BUILT_IN_ROLES: readonly Role[] = [
  builtIn("default", "An agent without a speciality, set up like the one that starts it.", null),
  builtIn(
    "explorer",
    "Finds things out: where something is, how it works, what depends on it. Changes nothing.",
    "You find things out for somebody else. Look instead of guessing, change nothing, and stop when the question is " +
      "answered. Report what you found with the places where it stands, what you looked at without success, and how " +
      "sure you are.",
  ),
  builtIn(
    "worker",
    "Carries out one piece of work with a clear boundary, such as a change to a set of files.",
    "You carry out one piece of work and own it to its end. Stay inside the boundary you were given; others may be at " +
      "work next to you, so leave alone what is not yours. Check your work before you report, and report what you " +
      "changed, how you checked it and what is left.",
  ),
];

const loadArguments = z.strictObject({
  files: z.array(z.object({ file: z.string(), bytes: z.instanceof(Uint8Array) })),
  tools: z.array(z.object({ name: z.string() })),
  problems: z.array(z.object({ file: z.string(), error: z.instanceof(RejectedError) })),
});

/**
 * The roles of a folder, from `readRoleFolder`, or of files, for `createRuntime`; the first of a name wins. What cannot be used is
 * in `faults` and `warnings`.
 * @param tools the host's own, which `tools` and `effects` of a file are held against.
 */
export function loadRoles(
  from: RoleFolder | readonly RoleFile[],
  tools: readonly ToolDeclaration[] = [],
): RoleSet {
  const { files, problems } = Array.isArray(from)
    ? { files: from, problems: [] }
    : ((from ?? {}) as RoleFolder);
  check("loadRoles", loadArguments, { files, tools, problems });
  const roles = new Map(BUILT_IN_ROLES.map((role) => [role.name, role]));
  const unavailable = new Map<string, string>();
  const faults: RejectedError[] = [];
  const warnings: string[] = [];
  const refuse = (file: string, error: RejectedError): void => {
    faults.push(error);
    const name = nameOfFile(file);
    if (roles.get(name)?.source === "built-in") roles.delete(name);
    if (!roles.has(name)) unavailable.set(name, error.message);
  };
  for (const input of files) {
    try {
      const { role, disabled, warnings: more } = parseRoleFile(input, tools);
      const former = roles.get(role.name);
      if (former !== undefined && former.source !== "built-in") {
        throw roleFault(
          input.file,
          "name",
          `\`${role.name}\` is taken by ${former.source}; rename one of them`,
        );
      }
      warnings.push(...more);
      if (disabled) {
        roles.delete(role.name);
        unavailable.set(role.name, `${input.file}: the role is disabled; remove \`disable\` to use it.`);
      } else {
        roles.set(role.name, role);
        unavailable.delete(role.name);
      }
    } catch (error) {
      if (!(error instanceof RejectedError)) throw error;
      refuse(input.file, error);
    }
  }
  for (const { file, error } of problems) refuse(file, error);
  return { roles, unavailable, faults, warnings };
}

/**
 * The role of a spawn; null when none is asked for.
 * @throws RejectedError `INVALID_ARGUMENT` for a name without a usable role.
 */
export function chooseRole(name: string | null | undefined, set: RoleSet): Role | null {
  if (name === null || name === undefined) return null;
  const role = set.roles.get(name);
  if (role !== undefined) return role;
  const reason = set.unavailable.get(name);
  const shown = clip(name);
  const available = [...set.roles.keys()].toSorted();
  throw new RejectedError(
    "INVALID_ARGUMENT",
    reason === undefined
      ? `agent_type \`${shown}\` is unknown; available roles: ${available.join(", ")}.`
      : `agent_type \`${shown}\` is not available (${reason}) Available roles: ${available.join(", ")}.`,
    { argument: "agent_type", value: shown, available },
  );
}
