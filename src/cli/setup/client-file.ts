/**
 * The file in which a client keeps its servers, with our entry in it or not.
 *
 * - F1 Nothing else in it is changed, and it is replaced as a whole: a client that reads it meanwhile sees the old or the new one.
 * - F2 A file that cannot be understood is left as it is.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import type { JsonObject } from "../../protocol/json.ts";
import { badUse } from "../failure.ts";
import { ENTRY, type McpClient, type ServerCommand } from "./clients.ts";
import { isEmptyJson, readJson, writeJson } from "./entry-in-json.ts";
import { readToml, writeToml } from "./entry-in-toml.ts";

/** What is not UTF-8 would be changed by being read. */
const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export type Scope = "user" | "project";

export interface ClientFile {
  readonly path: string;
  readonly text: string;
  /** Ours as it stands there; null when it does not. */
  readonly entry: JsonObject | null;
}

/** Null where the client has no such file. */
export function filePlace({ user, project }: McpClient, scope: Scope): string | null {
  if (scope === "user") return user(process.env);
  return project === null ? null : resolve(project);
}

/** @throws CommandError for a file that cannot be read or understood. */
export function readClientFile(client: McpClient, place: string): ClientFile {
  const path = existsSync(place) ? realpathSync(place) : place;
  try {
    const text = existsSync(path) ? UTF_8.decode(readFileSync(path)) : "";
    const document = client.format === "toml" ? readToml(text) : readJson(text);
    let found: unknown = document;
    for (const name of [...client.within, ENTRY]) found = (found as JsonObject | undefined)?.[name];
    return { path, text, entry: (found as JsonObject | undefined) ?? null };
  } catch (error) {
    throw badUse(
      `${path} is left as it is, as it cannot be read: ${firstLine(error)}. Mend it, or move it away.`,
    );
  }
}

/** The text with our entry, or without it where there is none. @throws CommandError where that would touch something else. */
export function withEntry(client: McpClient, file: ClientFile, server: ServerCommand | null): string {
  if (server === null && file.entry === null) return file.text;
  const entry = server === null ? undefined : client.entry(server);
  const path = [...client.within, ENTRY];
  try {
    if (client.format === "toml") return writeToml(file.text, path, entry);
    const edited = writeJson(file.text, path, entry);
    const left = client.within.reduce<unknown>((at, name) => (at as JsonObject)[name], readJson(edited));
    const isLast = entry === undefined && Object.keys(left as JsonObject).length === 0;
    return isLast ? writeJson(edited, client.within, undefined) : edited;
  } catch (error) {
    throw badUse(`${file.path} is left as it is: ${firstLine(error)}. Change it by hand.`);
  }
}

/** Writes it, or takes it away where nothing is left in it. */
export function writeClientFile({ format }: McpClient, { path }: ClientFile, text: string): void {
  const isEmpty = format === "toml" ? text.trim() === "" : isEmptyJson(text);
  if (isEmpty) return rmSync(path, { force: true });
  mkdirSync(dirname(path), { recursive: true });
  const beside = `${path}.coppice-${process.pid}`;
  try {
    writeFileSync(beside, text, { mode: 0o600, flag: "wx" });
    if (existsSync(path)) chmodSync(beside, statSync(path).mode & 0o777);
    renameSync(beside, path);
  } finally {
    rmSync(beside, { force: true });
  }
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split("\n")[0]!.trim().replace(/\.$/, "");
}
