/**
 * What the root knows of the works that it asked for, from its conversation alone: who exists, what is still open, what came
 * back. The runtime keeps the true books; a model has to read them from what its tools returned, and so does this script.
 *
 * - L1 After a crash a call may be `lost`: then nothing is taken for granted and `unsure` asks for a look at the list.
 * - L2 Where a profile's outputs carry no work ids, requests and answers are counted instead.
 */
import type { Call, Conversation } from "./conversation.ts";
import { objectOf, rowsOf, textOf } from "./conversation.ts";

/** More requests than this to one agent are not made; something is wrong with it then. */
const MOST_ASKED = 8;
/** Refusals that pass by themselves. */
const PASSING = /AGENT_LIMIT_REACHED|QUEUE_FULL|MAILBOX_FULL|LIMIT_REACHED/;

export class Ledger {
  readonly #talk: Conversation;
  readonly #rich: boolean;

  constructor(talk: Conversation, rich: boolean) {
    this.#talk = talk;
    this.#rich = rich;
  }

  exists(name: string): boolean {
    const spawned = this.#asks(name).some(
      (call) => call.name === "spawn_agent" && (call.ending === "ok" || taken(call)),
    );
    return spawned || this.#listed(name).some((row) => row !== null);
  }

  /** Something was asked of it and is neither answered nor cut off. */
  isOpen(name: string): boolean {
    const cutAt = this.#interruptedAt(name);
    if (!this.#rich) {
      const asked = this.#asks(name).filter(
        (call) => (call.ending === "ok" || taken(call)) && call.at > cutAt,
      ).length;
      const answered = this.#letters(name).filter((letter) => letter.at > cutAt).length;
      return asked > answered;
    }
    const known = new Set<string>();
    for (const call of this.#asks(name)) {
      if (call.ending === "ok" && call.at > cutAt) known.add(textOf(objectOf(call.output)["work_id"]));
    }
    for (const row of this.#listed(name, cutAt)) {
      for (const id of Array.isArray(row?.["open_works"]) ? row["open_works"] : []) known.add(textOf(id));
    }
    for (const { workId } of this.results(name)) known.delete(workId);
    known.delete("");
    return known.size > 0;
  }

  /** A request to it was lost, or met an agent that was there already, and the list was not looked at since. */
  unsure(name: string): boolean {
    if (!this.#rich) return false;
    const doubtful = this.#asks(name).findLast((call) => call.ending === "lost" || taken(call));
    return (
      doubtful !== undefined && !this.#talk.calls.some((call) => isListing(call) && call.at > doubtful.at)
    );
  }

  /** It was asked too often, or refuses for good. */
  givenUp(name: string): boolean {
    const asks = this.#asks(name);
    const last = asks.at(-1);
    if (asks.length >= MOST_ASKED) return true;
    return last?.ending === "refused" && !taken(last) && !PASSING.test(JSON.stringify(last.output));
  }

  /** The newest call of all was a request to it that was refused for now. */
  mustRest(name: string): boolean {
    const last = this.#asks(name).at(-1);
    return last?.ending === "refused" && !taken(last) && this.#talk.calls.every((call) => call.at <= last.at);
  }

  interrupted(name: string): boolean {
    return this.#interruptedAt(name) > 0;
  }

  told(name: string): boolean {
    return this.#talk.calls.some(
      (call) =>
        call.name === "send_message" &&
        targets(call, name) &&
        call.ending !== "lost" &&
        call.ending !== "open",
    );
  }

  /** The answer of an agent that begins with these words. */
  answer(name: string, beginning: string): string | null {
    return this.results(name).find(({ text }) => text.startsWith(beginning))?.text ?? null;
  }

  /** Everything that came back from it, by mail or handed out by a wait; each once. */
  results(name: string): { readonly workId: string; readonly text: string }[] {
    const found = new Map<string, string>();
    for (const letter of this.#letters(name)) found.set(letter.workId ?? String(letter.at), letter.text);
    for (const call of this.#talk.calls) {
      if (call.name !== "wait_agent" || call.ending !== "ok") continue;
      for (const row of rowsOf(objectOf(call.output)["results"])) {
        if (row["agent"] === pathOf(name)) found.set(textOf(row["work_id"]), textOf(row["text"]));
      }
    }
    return [...found].map(([workId, text]) => ({ workId, text }));
  }

  #letters(name: string) {
    return this.#talk.letters.filter(
      (letter) => letter.type === "FINAL_ANSWER" && letter.sender === pathOf(name),
    );
  }

  #asks(name: string): Call[] {
    return this.#talk.calls.filter(
      (call) =>
        (call.name === "spawn_agent" && call.input["task_name"] === name) ||
        (call.name === "followup_task" && targets(call, name)),
    );
  }

  /** How the lists showed it, after a point of the conversation. */
  #listed(name: string, after = 0) {
    return this.#talk.calls
      .filter((call) => isListing(call) && call.at > after)
      .map(
        (call) =>
          rowsOf(objectOf(call.output)["agents"]).find((row) => row["agent"] === pathOf(name)) ?? null,
      );
  }

  /** Where in the conversation it was interrupted; 0 when it was not. */
  #interruptedAt(name: string): number {
    const call = this.#talk.calls.find(
      (one) => one.name === "interrupt_agent" && targets(one, name) && one.ending === "ok",
    );
    return call?.at ?? 0;
  }
}

export function pathOf(name: string): string {
  return `/root/${name}`;
}

function targets(call: Call, name: string): boolean {
  return call.input["target"] === name || call.input["target"] === pathOf(name);
}

function isListing(call: Call): boolean {
  return call.name === "list_agents" && call.ending === "ok";
}

/** The agent was there already: an earlier spawn, whose output was lost, had made it. */
function taken(call: Call): boolean {
  return (
    call.name === "spawn_agent" &&
    call.ending === "refused" &&
    JSON.stringify(call.output).includes("AGENT_EXISTS")
  );
}
