/**
 * Two providers to practise threads on: they need no key and no network, and say back what they know, so that one can see what
 * a switch, a fork or a rollback has told them. Everything is read from the request, so that it holds in any process.
 */
import type { PromptMessage } from "../protocol/provider-events.ts";
import { scripted, type ScriptedProvider } from "../providers/scripted/provider.ts";
import { pause, say, together } from "../providers/scripted/script.ts";
import { counted } from "./screen/words.ts";
import { clean, clip } from "./terminal.ts";

export const PRACTICE = ["echo", "parrot"] as const;
const MODEL = "practice";
const HANDED = "[runtime: ";
const QUOTED_COLUMNS = 60;
const FOUND_LINES = 3;
/** Of the frame of a text that was handed over: it is about the thread, not from it. */
const FRAME = /^(?:Covers|Workspace|- Goal): /;
/** What a provider of this kind has answered: nothing that anybody wants back. */
const HEARD = ' heard "';
/** `recall port`: every line with that word, wherever it was learnt. */
const RECALL = /^recall (\S+)/i;

/** `pace` is how long a response takes, in milliseconds. */
export function practiceProvider(name: string, pace: number): ScriptedProvider {
  return scripted(
    {
      "*": ({ messages, inputs }) =>
        together(...(pace === 0 ? [] : [pause(pace)]), say(answer(name, messages, inputs.at(-1) ?? ""))),
    },
    { models: { [MODEL]: { collaborates: false } }, recorded: 0 },
  );
}

function answer(name: string, messages: readonly PromptMessage[], asked: string): string {
  const word = RECALL.exec(asked)?.[1];
  if (word !== undefined) return recalled(name, messages, word.toLowerCase());
  const turns = messages.filter(({ role }) => role === "assistant").length;
  const texts = messages.filter((message) => message.role === "user" && message.text.startsWith(HANDED));
  const handed = texts.length === 0 ? "was handed nothing" : `was handed ${counted(texts.length, "text")}`;
  return `${name}${HEARD}${quoted(asked)}". It has had ${counted(turns, "turn")} here before and ${handed}.`;
}

/** Lines of what came before the question, the question itself not. */
function recalled(name: string, messages: readonly PromptMessage[], word: string): string {
  const lines = messages
    .slice(
      0,
      messages.findLastIndex(({ role }) => role === "user"),
    )
    .flatMap((message) => (message.role === "user" ? message.text.split("\n") : []))
    .filter((line) => line.toLowerCase().includes(word))
    .filter((line) => ![RECALL, FRAME].some((form) => form.test(line.trim())) && !line.includes(HEARD));
  if (lines.length === 0) return `${name} knows nothing of "${quoted(word)}".`;
  const found = [...new Set(lines.map(quoted))].slice(-FOUND_LINES);
  return `${name} knows: ${found.map((line) => `"${line}"`).join(", ")}.`;
}

function quoted(text: string): string {
  return clip(clean(text.slice(0, 10 * QUOTED_COLUMNS)).trim(), QUOTED_COLUMNS);
}
