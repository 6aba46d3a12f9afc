/**
 * How the program is started for an agent: with nothing of the settings, plugins, hooks, skills and servers of the user's, and
 * with the tools that its effects allow (POL-2).
 */
import type { NativePolicy } from "../port.ts";
import { toolsOf, withoutTools } from "./policy.ts";

/** What a process is started with and keeps; a turn that wants another gets another process. */
export type ClaudeSelection = Pick<NativePolicy, "model" | "effort" | "effects" | "workspace">;

export function isSame(one: ClaudeSelection, other: ClaudeSelection): boolean {
  return (
    one.model === other.model &&
    one.effort === other.effort &&
    one.workspace === other.workspace &&
    toolsOf(one.effects).join() === toolsOf(other.effects).join()
  );
}

/** What its processes have in common. */
export interface ClaudeBeside {
  readonly instructions: string | null;
  /** Agents of its own are on. */
  readonly nativeAgents: boolean;
}

export function settingsFor(
  { model, effort, effects, workspace }: ClaudeSelection,
  { instructions, nativeAgents }: ClaudeBeside,
): Readonly<Record<string, unknown>> {
  return {
    ...(model === null ? {} : { model }),
    ...(effort === null ? {} : { effort }),
    ...(workspace === null ? {} : { cwd: workspace }),
    settingSources: [],
    strictMcpConfig: true,
    // What it would tell of the repository is read from it.
    settings: { includeGitInstructions: effects.includes("read") },
    tools: toolsOf(effects, nativeAgents),
    disallowedTools: withoutTools(nativeAgents),
    permissionMode: "default",
    // Mail and the words of users are no commands to the program, and name no files to it.
    verbatimPrompts: true,
    includePartialMessages: true,
    systemPrompt: {
      type: "preset",
      preset: "claude_code",
      // Those of the agent that goes on with a conversation, and not those of whoever began it.
      snapshot: false,
      ...(instructions === null ? {} : { append: instructions }),
    },
  };
}

/**
 * The end of a task in the background would begin a turn that nobody asked for; its memory is the user's; and tools are offered,
 * and not searched for.
 */
export function environmentOf(
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string | undefined>> {
  return {
    ...env,
    CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: "1",
    CLAUDE_CODE_DISABLE_AUTO_MEMORY: "1",
    ENABLE_TOOL_SEARCH: "false",
  };
}
