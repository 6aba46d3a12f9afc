/**
 * The conversations that Claude Code keeps, `projects/<folder>/<id>.jsonl` below its configuration. Its SDK looks in the
 * environment of this process, which need not be the program's: it is given them to read, and what it forks is written here.
 *
 * - T1 A fork is there whole or not at all: it may be found after a crash (lineage C5.19).
 * - T2 What is under way may be written to meanwhile; a row that is not whole yet is none.
 */
import { createReadStream } from "node:fs";
import { access, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import type { ClaudeSdk, ClaudeSessionStore } from "./sdk.ts";
import { type ClaudeRow, forkOf, rowOf, type SaidMessage, saidMessage } from "./wire.ts";

export interface ClaudeConversation {
  readonly rows: readonly ClaudeRow[];
  /** What the model was told and has said, oldest first. */
  readonly said: readonly SaidMessage[];
}

/** Ids are asked for as they were stored: what is none is no path either. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export class ClaudeTranscripts {
  readonly #folder: string;

  constructor(env: Readonly<Record<string, string | undefined>>) {
    const settings = env["CLAUDE_CONFIG_DIR"] ?? join(env["HOME"] ?? homedir(), ".claude");
    this.#folder = join(settings, "projects");
  }

  async has(sessionId: string): Promise<boolean> {
    return (await this.#find(sessionId)) !== null;
  }

  /** Null when there is none. */
  async read(sdk: ClaudeSdk, sessionId: string): Promise<ClaudeConversation | null> {
    const path = await this.#find(sessionId);
    if (path === null) return null;
    const rows = await rowsIn(path);
    const said = await sdk.getSessionMessages(sessionId, { sessionStore: storeOf(path, rows) });
    return { rows, said: said.flatMap((one) => saidMessage(one) ?? []) };
  }

  /** The id of the fork, up to and with a message; null when there is no such conversation. @throws what the SDK refuses with. */
  async fork(sdk: ClaudeSdk, sessionId: string, upTo: string | null): Promise<string | null> {
    const path = await this.#find(sessionId);
    if (path === null) return null;
    const sessionStore = storeOf(path, await rowsIn(path));
    const cut = upTo === null ? {} : { upToMessageId: upTo };
    return (await sdk.forkSession(sessionId, { sessionStore, ...cut })).sessionId;
  }

  /** Ids of those that were forked from it. */
  async forksOf(sessionId: string): Promise<readonly string[]> {
    const path = await this.#find(sessionId);
    if (path === null) return [];
    const folder = dirname(path);
    const forks: string[] = [];
    for (const name of await readdir(folder)) {
      const id = name.replace(/\.jsonl$/, "");
      if (id !== sessionId && UUID.test(id) && (await sourceOf(join(folder, name))) === sessionId)
        forks.push(id);
    }
    return forks;
  }

  async #find(sessionId: string): Promise<string | null> {
    if (!UUID.test(sessionId)) return null;
    for (const name of await readdir(this.#folder).catch(() => [])) {
      const path = join(this.#folder, name, `${sessionId}.jsonl`);
      if (await isThere(path)) return path;
    }
    return null;
  }
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

function storeOf(path: string, rows: readonly ClaudeRow[]): ClaudeSessionStore {
  return {
    load: async () => rows as never[],
    async append({ sessionId }, made) {
      const to = join(dirname(path), `${sessionId}.jsonl`);
      await writeFile(`${to}.part`, made.map((row) => `${JSON.stringify(row)}\n`).join(""), { mode: 0o600 });
      await rename(`${to}.part`, to);
    },
  };
}

async function rowsIn(path: string): Promise<readonly ClaudeRow[]> {
  const text = await readFile(path, "utf8");
  return text.split("\n").flatMap((line) => rowOf(line) ?? []);
}

/** The first row of a fork says what it was forked from; what that is it says of all of them. */
async function sourceOf(path: string): Promise<string | null> {
  const stream = createReadStream(path, "utf8");
  try {
    for await (const line of createInterface({ input: stream })) {
      const row = rowOf(line);
      if (row?.uuid !== undefined) return forkOf(row);
    }
    return null;
  } finally {
    stream.destroy();
  }
}
