/** What Claude Code asks its user before it does something, as a request of ours and its answer (pure, but for the asking). */
import type { NativeAnswer, NativeRequest } from "../../protocol/native-events.ts";
import { type ClaudeApprovals, QUESTION_TOOL } from "./policy.ts";
import { TOOL_PREFIX } from "./tool-server.ts";
import { refOf } from "./translate.ts";
import { questionsOf } from "./wire.ts";
import { questionText } from "../turn-told.ts";

/** What the SDK is answered. */
type Permission =
  | { readonly behavior: "allow"; readonly updatedInput: Readonly<Record<string, unknown>> }
  | { readonly behavior: "deny"; readonly message: string };

/** What the SDK tells beside the call. */
export interface PermissionAsked {
  readonly toolUseID: string;
  readonly title?: string;
  readonly decisionReason?: string;
}

type Ask = (request: NativeRequest) => Promise<NativeAnswer>;

export async function permit(
  tool: string,
  input: Readonly<Record<string, unknown>>,
  { toolUseID, title, decisionReason }: PermissionAsked,
  approvals: ClaudeApprovals,
  ask: Ask,
): Promise<Permission> {
  const allowed: Permission = { behavior: "allow", updatedInput: input };
  const ref = refOf(toolUseID);
  if (tool === QUESTION_TOOL)
    return question(input, (text) => ask({ kind: "question", ref, text, about: null }));
  // Ours are asked about by us.
  if (tool.startsWith(TOOL_PREFIX) || approvals === "never") return allowed;
  const why = decisionReason === undefined ? "" : ` (${decisionReason})`;
  const answer = await ask({
    kind: "approval",
    ref,
    text: title ?? `May it use ${tool}?${why}`,
    about: { tool, input: JSON.stringify(input) },
  });
  if (answer.kind !== "decision") return NOBODY;
  const { verdict, note } = answer.decision;
  if (verdict === "approved") return allowed;
  return { behavior: "deny", message: note ?? "The user does not allow this." };
}

const NOBODY: Permission = { behavior: "deny", message: "Nobody answers any more." };

async function question(
  input: Readonly<Record<string, unknown>>,
  ask: (text: string) => Promise<NativeAnswer>,
): Promise<Permission> {
  const questions = questionsOf(input);
  const answer = await ask(questionText(questions));
  if (answer.kind !== "answer") return NOBODY;
  const answers = Object.fromEntries(questions.map((one) => [one.question, answer.text]));
  return { behavior: "allow", updatedInput: { ...input, answers } };
}
