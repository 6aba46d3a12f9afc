/**
 * One role file: Markdown, whose front matter names the role and whose body is its instructions. Files written for
 * Claude (`.claude/agents/*.md`) and OpenCode (`.opencode/agent/*.md`) are read as they are.
 *
 * - L1 A file that cannot be read is an error with file, field and remedy; it harms no other file.
 * - L2 A key that is not known warns and changes nothing; one that asks for authority a role cannot give is kept in
 *   `ignored`, so that it can be reported (POL-2).
 */
import { parseDocument } from "yaml";
import { z } from "zod";
import { type Effect, EFFECTS } from "../protocol/agent.ts";
import { RejectedError } from "../protocol/errors.ts";
import { byteLength } from "../platform/text.ts";
import type { ToolDeclaration } from "./effects.ts";
import { readToolKeys } from "./role-tools.ts";

/** What a spawn's `agent_type` (`role` in the library) names: from a role file, or built in. */
export interface Role {
  readonly name: string;
  readonly description: string;
  /** Null: it adds none. */
  readonly instructions: string | null;
  /** Null: as resolved before. May be `provider/model`. One that the runtime does not have is passed over. */
  readonly model: string | null;
  readonly effort: string | null;
  /** Own tools it is cut down to; null: as the parent. */
  readonly tools: readonly string[] | null;
  /** Own tools taken from it, whatever it is given. */
  readonly denied: readonly string[];
  readonly effects: readonly Effect[] | null;
  /** It starts no agents, on whatever model: a leaf. */
  readonly leaf: boolean;
  /** The keys behind `effects`, as written. */
  readonly authority: readonly { readonly field: string; readonly asked: string }[];
  /** Keys that ask for what no role can give. */
  readonly ignored: readonly { readonly field: string; readonly asked: string }[];
  /** The file, or `built-in`. */
  readonly source: string;
}

/** A role file's path, which names its role where its front matter does not, and its contents. */
export interface RoleFile {
  readonly file: string;
  readonly bytes: Uint8Array;
}

export interface ParsedRole {
  readonly role: Role;
  /** Switched off in its file. */
  readonly disabled: boolean;
  readonly warnings: readonly string[];
}

/** A role is a page of text; anything larger is some other file. */
export const ROLE_FILE_BYTES = 256 * 1024;
/** Keys and some lines each; and marks that may open lists, maps, anchors and tags. More of them can take seconds to read. */
const FRONT_MATTER_BYTES = 16 * 1024;
const FRONT_MATTER_MARKS = 1000;
/** Keys that are lists or maps take time without end to be turned into text. */
const READ = { stringKeys: true } as const;
const MARK = /[[{&*!?]|- /g;

const text = z.string({ error: "must be text" });
const textList = z.union([text, z.array(text)], { error: "must be a list of names" });
const frontMatterSchema = z.looseObject({
  name: z
    .string({ error: "must be text" })
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/,
      "must be 1 to 64 letters, digits, `_` or `-`, such as `reviewer`",
    )
    .optional(),
  description: z
    .string({
      error: (issue) =>
        issue.input === undefined ? "is missing; say when the role is to be used" : "must be text",
    })
    .trim()
    .min(1, "is empty; say when the role is to be used"),
  model: text.nullish(),
  effort: text.nullish(),
  reasoningEffort: text.nullish(),
  instructions: text.nullish(),
  prompt: text.nullish(),
  tools: z
    .union([textList, z.record(z.string(), z.boolean())], {
      error: "must be a list of tool names, or a map of tool names to true or false",
    })
    .nullish(),
  disallowedTools: textList.nullish(),
  effects: z
    .array(z.enum(EFFECTS, { error: `may hold ${EFFECTS.join(", ")}` }), {
      error: `must be a list of ${EFFECTS.join(", ")}`,
    })
    .nullish(),
  permission: z
    .union([text, z.record(z.string(), z.unknown())], { error: "must be a word or a map" })
    .nullish(),
  permissionMode: text.nullish(),
  sandbox_mode: text.nullish(),
  disable: z.boolean({ error: "must be true or false" }).nullish(),
});

/** Keys that say nothing about how an agent runs. */
const SILENT = new Set(["color", "mode"]);
/** Keys that would give authority, which no role does. */
const AUTHORITY = new Set(["mcpServers", "mcp_servers", "mcp", "approval_policy", "model_provider"]);

/** @throws RejectedError `INVALID_ARGUMENT` whose details name file and field. */
export function parseRoleFile(input: RoleFile, tools: readonly ToolDeclaration[]): ParsedRole {
  const { file } = input;
  const { front, body } = split(file, decode(input));
  const parsed = frontMatterSchema.safeParse(front);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    throw roleFault(
      file,
      issue.path[0] === undefined ? "front matter" : String(issue.path[0]),
      issue.message,
    );
  }
  const keys = parsed.data;
  const narrowing = readToolKeys(keys, tools);
  const instructions = body === "" ? (keys.instructions ?? keys.prompt ?? "").trim() : body;
  const ignored: { field: string; asked: string }[] = [];
  const warnings: string[] = [...narrowing.warnings];
  for (const [key, value] of Object.entries(keys)) {
    if (AUTHORITY.has(key)) ignored.push({ field: key, asked: JSON.stringify(value) });
    else if (!Object.hasOwn(frontMatterSchema.shape, key) && !SILENT.has(key)) {
      warnings.push(`${key}: is not known and has no effect`);
    }
  }
  return {
    role: {
      name: keys.name ?? nameOfFile(file),
      description: keys.description,
      instructions: instructions === "" ? null : instructions,
      model: keys.model === undefined || keys.model === null || keys.model === "inherit" ? null : keys.model,
      effort: keys.effort ?? keys.reasoningEffort ?? null,
      tools: narrowing.tools,
      denied: narrowing.denied,
      effects: narrowing.effects,
      leaf: narrowing.leaf,
      authority: narrowing.authority,
      ignored,
      source: file,
    },
    disabled: keys.disable === true,
    warnings: warnings.map((warning) => `${file}: ${warning}`),
  };
}

/** The last part of a path, without `.md`. */
export function nameOfFile(file: string): string {
  return file.slice(Math.max(file.lastIndexOf("/"), file.lastIndexOf("\\")) + 1).replace(/\.md$/i, "");
}

export function roleFault(file: string, field: string, what: string): RejectedError {
  return new RejectedError("INVALID_ARGUMENT", `${file}: ${field} ${what}.`, { file, field });
}

function decode({ file, bytes }: RoleFile): string {
  if (bytes.byteLength > ROLE_FILE_BYTES) throw tooLarge(file, bytes.byteLength);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    const message = `${file}: contents are not UTF-8; save the file as UTF-8.`;
    throw new RejectedError("INVALID_ARGUMENT", message, { file, field: "contents" }, cause);
  }
}

export function tooLarge(file: string, bytes: number): RejectedError {
  return roleFault(
    file,
    "contents",
    `have ${bytes} bytes and at most ${ROLE_FILE_BYTES} are read; shorten the file`,
  );
}

function split(file: string, contents: string): { front: unknown; body: string } {
  const lines = contents.split(/\r?\n/);
  const end = lines.findIndex((line, at) => at > 0 && line.trimEnd() === "---");
  if (lines[0]?.trimEnd() !== "---" || end === -1) {
    throw roleFault(file, "front matter", "is missing; start the file with `---`, its keys, and `---`");
  }
  return {
    front: readFrontMatter(file, lines.slice(1, end)),
    body: lines
      .slice(end + 1)
      .join("\n")
      .trim(),
  };
}

/** Descriptions with a bare `: ` in them are common and no YAML; when the text fails, they are read as plain text. */
function readFrontMatter(file: string, lines: readonly string[]): unknown {
  const source = lines.join("\n");
  requireBounds(file, source);
  const strict = parseDocument(source, READ);
  if (strict.errors.length === 0) return toData(file, strict);
  const quoted = lines.map((line) =>
    line.replace(
      /^description: (?!["'[{|>])(.+)$/,
      (_, value: string) => `description: ${JSON.stringify(value)}`,
    ),
  );
  const lenient = parseDocument(quoted.join("\n"), READ);
  if (lenient.errors.length === 0) return toData(file, lenient);
  const [reason = ""] = strict.errors[0]!.message.split("\n");
  throw roleFault(file, "front matter", `is no valid YAML (${reason.replace(/[.:]$/, "")}); correct it`);
}

function requireBounds(file: string, source: string): void {
  const refuse = (use: string, most: number): never => {
    throw roleFault(file, "front matter", `has ${use} and at most ${most} are read; move long text below it`);
  };
  const bytes = byteLength(source);
  if (bytes > FRONT_MATTER_BYTES) refuse(`${bytes} bytes`, FRONT_MATTER_BYTES);
  const marks = source.match(MARK)?.length ?? 0;
  if (marks > FRONT_MATTER_MARKS)
    refuse(`${marks} marks of lists, maps, anchors and tags`, FRONT_MATTER_MARKS);
}

function toData(file: string, document: ReturnType<typeof parseDocument>): unknown {
  try {
    return document.toJS({ maxAliasCount: 20 }) ?? {};
  } catch (cause) {
    const message = `${file}: front matter has too many aliases; write the values out.`;
    throw new RejectedError("INVALID_ARGUMENT", message, { file, field: "front matter" }, cause);
  }
}
