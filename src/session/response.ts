/**
 * What a response has brought so far, checked as it comes: an adapter is code of others, and what it says is stored, counted
 * and shown from here on.
 *
 * - E1 A part that could not be stored or answered makes the response a fault of the protocol; so do two calls with one id,
 *   whose results nobody could tell apart.
 * - E2 Figures that cannot be counted are not reported. What comes after the finish is not part of it.
 * - E3 Whole parts take the place of what streamed before them. No response grows without bounds.
 */
import { RejectedError } from "../protocol/errors.ts";
import type { StepEvent, StepUsage } from "../protocol/provider-events.ts";
import type { AssistantPart } from "../protocol/transcript.ts";

/** Longer than any name of a tool; what is beyond it names none. */
const NAME_CHARACTERS = 128;
/** Far beyond what any model answers at once. */
const MOST_CHARACTERS = 16 * 1024 * 1024;

export type Finish = Extract<StepEvent, { type: "finish" }>["reason"];

export class Response {
  /** Its acceptance is being stored. */
  accepting = false;
  usage: StepUsage | null = null;
  finish: Finish | null = null;
  readonly #parts: AssistantPart[] = [];
  readonly #ids = new Set<string>();
  #kept = 0;
  #text = "";
  #reasoning = "";

  /** Something was shown that a second try would show again. */
  get visible(): boolean {
    return this.#text !== "" || this.#parts.length > 0;
  }

  /** Takes an event in, and answers the text that it shows. @throws RejectedError `PROVIDER_PROTOCOL`. */
  take(event: StepEvent): string | null {
    if (this.finish !== null) return null;
    switch (event.type) {
      case "text":
        this.#text += requireString(event.text, "a text");
        this.#requireRoom();
        return event.text;
      case "reasoning":
        this.#reasoning += requireString(event.text, "a reasoning");
        this.#requireRoom();
        return null;
      case "part":
        this.#add(event.part);
        return null;
      case "usage":
        this.usage = isCountable(event.usage) ? event.usage : null;
        return null;
      case "finish":
        this.finish = event.reason;
        return null;
      default:
        return null;
    }
  }

  #add(given: AssistantPart): void {
    const part = this.#checked(given);
    this.#parts.push(part);
    if (part.type === "text") this.#text = "";
    if (part.type === "reasoning") this.#reasoning = "";
    this.#kept += part.type === "tool_call" ? part.input.length : part.text.length;
    this.#requireRoom();
  }

  #checked(part: AssistantPart): AssistantPart {
    switch (part.type) {
      case "text":
      case "reasoning":
        requireString(part.text, `the part ${part.type}`);
        return part;
      case "tool_call":
        this.#requireNewId(part.callId);
        requireString(part.input, "the arguments of a call");
        return { ...part, name: requireString(part.name, "the name of a tool").slice(0, NAME_CHARACTERS) };
      case "request":
        this.#requireNewId(part.callId);
        this.#requireNewId(part.requestId);
        requireString(part.text, `a ${part.kind}`);
        return part;
      default:
        throw broken("a part of the response is of no known type");
    }
  }

  #requireNewId(id: string): void {
    if (requireString(id, "the id of a call") === "") throw broken("the id of a call is empty");
    if (this.#ids.has(id))
      throw broken(`two calls of one response have the id ${id.slice(0, NAME_CHARACTERS)}`);
    this.#ids.add(id);
  }

  #requireRoom(): void {
    if (this.#kept + this.#text.length + this.#reasoning.length <= MOST_CHARACTERS) return;
    throw broken(`the response has more than ${MOST_CHARACTERS} characters`);
  }

  parts(): readonly AssistantPart[] {
    const parts = [...this.#parts];
    if (this.#reasoning !== "") parts.unshift({ type: "reasoning", text: this.#reasoning });
    if (this.#text !== "") parts.push({ type: "text", text: this.#text });
    return parts;
  }

  /**
   * What a response that was cut off leaves: no calls, since one of them may be missing. Reasoning that led to no text is
   * left out too; there are providers that refuse a request with it.
   */
  partsOfCut(): readonly AssistantPart[] {
    const parts = this.parts().filter((part) => !("callId" in part));
    return parts.some((part) => part.type === "text") ? parts : [];
  }

  text(): string {
    return this.parts()
      .filter((part) => part.type === "text")
      .map((part) => part.text)
      .join("");
  }
}

function isCountable(usage: StepUsage): boolean {
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens } = usage;
  return [inputTokens, cachedInputTokens, outputTokens, reasoningTokens].every(
    (figure) => Number.isSafeInteger(figure) && figure >= 0,
  );
}

function requireString(value: unknown, what: string): string {
  if (typeof value === "string") return value;
  throw broken(`${what} of the response is no text`);
}

function broken(what: string): RejectedError {
  return new RejectedError("PROVIDER_PROTOCOL", `${what}; the adapter of the provider has to be mended.`, {});
}
