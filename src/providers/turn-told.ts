/** What turns of programs with a loop of their own tell in one way, whichever program it is. */
import type { NativeEvent } from "../protocol/native-events.ts";
import type { StepUsage } from "../protocol/provider-events.ts";

/** An event of a turn, to which whoever tells it adds the turn's key. */
export type Told<T extends NativeEvent = NativeEvent> = T extends unknown ? Omit<T, "key"> : never;

/** Before anything was; and at the end of a turn whose use was told as it came. */
export const NOTHING_USED: StepUsage = {
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
};

interface Question {
  readonly question: string;
  readonly options?: readonly { readonly label: string }[] | null | undefined;
}

/** Several questions at once are one of ours, whose answer is given to each. */
export function questionText(questions: readonly Question[]): string {
  return questions
    .map(({ question, options }) =>
      [question, ...(options ?? []).map(({ label }) => `- ${label}`)].join("\n"),
    )
    .join("\n\n");
}
