/**
 * What a model is to do, written into the prompt, so that a server without a memory can play many agents at once.
 *
 * A script is a row of directives, each `@@WORD rest@@`; what stands between them is of no interest. A step is what the model
 * answers to one request:
 *
 * - `TEXT words` and `REASON words` say and think; `LONG 300000` says so many characters.
 * - `CALL tool input` ends the step; the next one answers what the tool gave. `AND tool input` after it calls another one
 *   in the same step. Input is JSON, or text where the tool takes text.
 * - `HOLD` ends the step without an end: it is said, and then nothing until the client goes.
 * - `EMPTY` answers without a word. `ERROR 429` refuses with that status, however often it is asked.
 *
 * Past its last step a script says `done`.
 */
import { reasoning, type ReplyPart, text } from "../model-wire/reply.ts";

/** What the model answers to one request. */
export type Step =
  | { readonly status: number }
  | { readonly parts: readonly StepPart[]; readonly ending: "end" | "stall" };

/** The server knows what tools are called here, and names their calls. */
export type StepPart =
  | Exclude<ReplyPart, { type: "call" }>
  | { readonly type: "call"; readonly name: string; readonly input: string };

const DIRECTIVE = /@@(TEXT|REASON|LONG|CALL|AND|HOLD|EMPTY|ERROR)(?:\s+([\s\S]*?))?\s*@@/g;
const PAST_THE_END: Step = { parts: [text("done")], ending: "end" };

/** The steps of the script in a prompt; null when there is none. @throws Error for one that makes no sense. */
export function parseScript(prompt: string): readonly Step[] | null {
  const steps: Step[] = [];
  let parts: StepPart[] = [];
  const close = (step: Step): void => {
    steps.push(step);
    parts = [];
  };
  for (const [, word = "", rest = ""] of prompt.matchAll(DIRECTIVE)) {
    switch (word) {
      case "TEXT":
        parts.push(text(...inPieces(rest)));
        break;
      case "REASON":
        parts.push(reasoning("secret", ...inPieces(rest)));
        break;
      case "LONG":
        parts.push(text(...inPieces("long ".repeat(Math.ceil(Number(rest) / 5)).slice(0, Number(rest)))));
        break;
      case "CALL":
        close({ parts: [...parts, callOf(rest)], ending: "end" });
        break;
      case "AND": {
        const last = steps.pop();
        if (last === undefined || !("parts" in last) || parts.length > 0)
          throw new Error("AND stands right behind a CALL");
        close({ ...last, parts: [...last.parts, callOf(rest)] });
        break;
      }
      case "HOLD":
        close({ parts: parts.length > 0 ? parts : [text("holding")], ending: "stall" });
        break;
      case "EMPTY":
        close({ parts, ending: "end" });
        break;
      case "ERROR":
        close({ status: Number(rest) });
        break;
    }
  }
  if (parts.length > 0) close({ parts, ending: "end" });
  return steps.length === 0 ? null : steps;
}

export function stepAt(steps: readonly Step[], at: number): Step {
  return steps[at] ?? PAST_THE_END;
}

function callOf(rest: string): StepPart {
  const [, name, input] = /^(\S+)\s*([\s\S]*)$/.exec(rest) ?? [];
  if (name === undefined) throw new Error("CALL names a tool");
  return { type: "call", name, input: input === undefined || input === "" ? "{}" : input };
}

/** As a model would stream it, in few pieces however long it is, cut between two characters. */
function inPieces(words: string): string[] {
  const characters = Array.from(words);
  const size = Math.max(8, Math.ceil(characters.length / 16));
  return Array.from({ length: Math.ceil(characters.length / size) }, (_, at) =>
    characters.slice(at * size, (at + 1) * size).join(""),
  );
}

/** Directives, to be joined by spaces. */
export const ask = {
  text: (words: string) => `@@TEXT ${words}@@`,
  reason: (words: string) => `@@REASON ${words}@@`,
  long: (characters: number) => `@@LONG ${characters}@@`,
  call: (tool: string, input: object | string = {}) => `@@CALL ${tool} ${nested(input)}@@`,
  and: (tool: string, input: object | string = {}) => `@@AND ${tool} ${nested(input)}@@`,
  hold: () => "@@HOLD@@",
  empty: () => "@@EMPTY@@",
  error: (status: number) => `@@ERROR ${status}@@`,
};

/** A script within an input, for the agent that is given it, is none of this one's directives. */
function nested(input: object | string): string {
  return typeof input === "string" ? input : JSON.stringify(input).replaceAll("@@", "\\u0040\\u0040");
}
