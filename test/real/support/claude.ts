/** Claude in a home of its own, on a model of ours. */
import { type ClaudeOptions, createClaudeProvider } from "../../../src/providers/claude/claude-provider.ts";
import type { ClaudeSdk } from "../../../src/providers/claude/sdk.ts";
import type { NativeAdapter } from "../../../src/providers/port.ts";
import type { ModelServer } from "../../support/model-server/model-server.ts";
import { type Home, makeHome } from "./home.ts";
import type { Installed } from "./programs.ts";

export function claudeHome(server: ModelServer, env: Readonly<Record<string, string>> = {}): Home {
  return makeHome({
    ANTHROPIC_API_KEY: "dummy-claude",
    ANTHROPIC_BASE_URL: server.url,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    // It would try a refused request again for minutes.
    CLAUDE_CODE_MAX_RETRIES: "0",
    DISABLE_AUTOUPDATER: "1",
    ...env,
  });
}

/** What is used here of the package; its types are not there where it is not installed. */
export interface ClaudeModule {
  readonly query: (input: {
    readonly prompt: AsyncIterable<object>;
    readonly options: Readonly<Record<string, unknown>>;
  }) => AsyncIterable<ClaudeMessage> & {
    interrupt(): Promise<unknown>;
    mcpServerStatus(): Promise<readonly { readonly status: string }[]>;
  };
}

export interface ClaudeMessage {
  readonly type: string;
  readonly subtype?: string;
  readonly result?: string;
}

/** Options under which it has no tools, settings or servers but those that a test gives it. */
export function claudeOptions(program: Installed, home: Home): Readonly<Record<string, unknown>> {
  return {
    cwd: home.workspace,
    // It replaces the whole environment.
    env: home.env,
    model: "claude-sonnet-4-5",
    pathToClaudeCodeExecutable: program.command,
    settingSources: [],
    strictMcpConfig: true,
    tools: [],
  };
}

/** The adapter as a host would make it, in a home. */
export async function claudeAdapter(
  program: Installed,
  { env }: Pick<Home, "env">,
  more: ClaudeOptions = {},
): Promise<NativeAdapter> {
  const sdk = (await import(program.module!)) as ClaudeSdk;
  return createClaudeProvider({ sdk, pathToExecutable: program.command, env, ...more });
}
