/**
 * The `codex` profile under test: a harness with it, and what a model was told, as its transcript and requests show it.
 * Turns of the root are played one by one, so that a case reads in the order in which it happens.
 */
import type { PromptMessage } from "../../src/protocol/provider-events.ts";
import type { Json, JsonObject } from "../../src/protocol/json.ts";
import type { ItemBody } from "../../src/protocol/transcript.ts";
import { say, type ScriptEntry } from "../../src/providers/scripted/script.ts";
import { waitUntil } from "../../src/testing/wait-until.ts";
import { parseMail } from "../../src/mailbox/render.ts";
import { harness, type Harness, type HarnessOptions, type StoreKind } from "./harness.ts";

/** Scripts of agents below the root; the root's turns come with `turn`. */
export function codex(store: StoreKind, options: Omit<HarnessOptions, "store"> = {}): Promise<Harness> {
  return harness({
    ...options,
    store,
    scripts: { "/root": [], ...options.scripts },
    runtime: { profile: "codex", ...options.runtime },
  });
}

/** A call that an agent has made, with what came of it. */
export interface Made {
  readonly name: string;
  readonly output: Json;
  readonly isError: boolean;
}

/** One turn of the root: it makes the given steps and answers. Answers the calls that it made, in their order. */
export async function turn(h: Harness, ...steps: readonly ScriptEntry[]): Promise<readonly Made[]> {
  const { items } = await h.tree.root.record();
  h.provider.append("/root", ...steps, say("done"));
  await h.ask("go on");
  return madeIn((await h.tree.root.transcript()).slice(items));
}

/** All calls of an agent. */
export async function callsOf(h: Harness, path: string): Promise<readonly Made[]> {
  const agent = await h.tree.agent(path);
  return madeIn(await agent.transcript());
}

function madeIn(items: readonly ItemBody[]): Made[] {
  const results = new Map(
    items.flatMap((item) => (item.kind === "tool_result" ? [[item.callId, item] as const] : [])),
  );
  return items
    .flatMap((item) => (item.kind === "assistant" && !item.inherited ? item.parts : []))
    .flatMap((part) => {
      const result = part.type === "tool_call" ? results.get(part.callId) : undefined;
      return result === undefined
        ? []
        : [{ name: result.name, output: result.output, isError: result.isError }];
    });
}

/** Until an agent rests in a wait. */
export async function untilWaiting(h: Harness, path = "/root"): Promise<void> {
  const agent = await h.tree.agent(path);
  await waitUntil(`${path} waits`, async () => (await agent.status()).kind === "waiting");
}

/** Until an agent that runs has ended its run. */
export async function untilIdle(h: Harness, path: string): Promise<void> {
  const agent = await h.tree.agent(path);
  await waitUntil(`${path} is idle`, async () => (await agent.status()).kind === "idle");
}

/** The text of a refusal. @throws when the call was not refused. */
export function refusal(made: Made | undefined): string {
  if (made?.isError !== true) throw new Error(`not refused: ${JSON.stringify(made)}`);
  return (made.output as { error: string }).error;
}

export function codeOf(made: Made | undefined): Json | undefined {
  return made?.isError === true ? (made.output as JsonObject)["code"] : undefined;
}

/** What the n-th request of an agent held, in order and in few words; negative counts from the end. */
export function requestOf(h: Harness, path: string, at: number): readonly string[] {
  const request = h.provider.requests(path).at(at);
  if (request === undefined) throw new Error(`${path} made no request ${at}`);
  // Notes of the runtime's own that have nothing to do with any mail.
  const isNote = (words: string): boolean => /^\[runtime: (children|mode_hint)\]/.test(words);
  return request.messages.map(inWords).filter((words) => !isNote(words));
}

export function requestsOf(h: Harness, path: string): number {
  return h.provider.requests(path).length;
}

function inWords(message: PromptMessage): string {
  switch (message.role) {
    case "system":
      return `system: ${message.text}`;
    case "user": {
      const mail = parseMail(message.text);
      if (mail === null) return message.text;
      return `${mail.header["Message Type"]} from ${mail.header["Sender"]}: ${mail.payload}`;
    }
    case "assistant":
      return message.parts
        .map((part) =>
          part.type === "tool_call"
            ? `call ${part.name}`
            : part.type === "text"
              ? `said ${part.text}`
              : part.type,
        )
        .join(", ");
    case "tool":
      return `${message.name} → ${typeof message.output === "string" ? message.output : JSON.stringify(message.output)}`;
  }
}

/** The statuses that `list_agents` showed. */
export function listed(made: Made | undefined): readonly (readonly [string, Json])[] {
  const { agents } = made!.output as unknown as { agents: { agent_name: string; agent_status: Json }[] };
  return agents.map((agent) => [agent.agent_name, agent.agent_status] as const);
}
