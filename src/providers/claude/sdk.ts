/**
 * What is used of `@anthropic-ai/claude-agent-sdk`. The package is not ours to bring: the user installs it, or hands it in. It
 * is taken from the user's folder, or from beside Coppice.
 */
import { packageIn } from "../../platform/load-package.ts";
import { RejectedError } from "../../protocol/errors.ts";

/** A conversation that goes on for as long as its input does. */
export interface ClaudeQuery extends AsyncIterable<unknown> {
  initializationResult(): Promise<unknown>;
  /** What its types leave out: input that it has not begun with goes too. */
  interrupt(how: { readonly cancelQueued: true }): Promise<unknown>;
  close(): void;
}

/** The Claude Agent SDK, by what the adapter uses of it. */
export interface ClaudeSdk {
  query(input: {
    readonly prompt: AsyncIterable<never>;
    readonly options: Readonly<Record<string, unknown>>;
  }): ClaudeQuery;
  getSessionMessages(
    sessionId: string,
    options: { readonly sessionStore: ClaudeSessionStore },
  ): Promise<readonly unknown[]>;
  forkSession(
    sessionId: string,
    options: { readonly sessionStore: ClaudeSessionStore; readonly upToMessageId?: string },
  ): Promise<{ readonly sessionId: string }>;
}

/** Where the SDK reads and writes conversations. */
export interface ClaudeSessionStore {
  load(key: { readonly sessionId: string }): Promise<never[] | null>;
  append(key: { readonly sessionId: string }, rows: readonly object[]): Promise<void>;
}

const PACKAGE = "@anthropic-ai/claude-agent-sdk";
const VERSION = "0.3";

/** @throws RejectedError `PROVIDER_NOT_CONFIGURED` that says what to install. */
export function loadClaudeSdk(folders: readonly string[] = [process.cwd(), import.meta.dirname]): ClaudeSdk {
  for (const folder of folders) {
    const found = packageIn(folder, PACKAGE);
    if (typeof found?.["query"] === "function") return found as unknown as ClaudeSdk;
  }
  const wanted = `${PACKAGE}@${VERSION}`;
  throw new RejectedError(
    "PROVIDER_NOT_CONFIGURED",
    `the provider of Claude needs the package ${wanted}; run: npm install ${wanted}`,
    { package: wanted },
  );
}
