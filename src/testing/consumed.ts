/**
 * The last line of a test: everything that was sent was read, and everything that was scripted was played. What is left over
 * is either a lost message or a test that does not test what it says.
 */
import { z } from "zod";
import { check, clip, optionsOf, withMethods } from "../platform/check.ts";
import { ROOT_PATH } from "../protocol/agent-path.ts";
import { RejectedError } from "../protocol/errors.ts";
import { idOf, type TreeId } from "../protocol/ids.ts";
import type { ScriptedProvider } from "../providers/scripted/provider.ts";
import type { Page, PageRequest, Store, StoreView } from "../store/port.ts";

/** What is looked through for things that are left over. */
export interface Consumable {
  readonly providers?: readonly ScriptedProvider[];
  readonly store?: Store;
  /** All trees of the store unless given. */
  readonly trees?: readonly TreeId[];
}

const consumable = optionsOf<Consumable>({
  providers: z
    .array(
      withMethods<ScriptedProvider>(
        "is no scripted provider; give what `scripted` returns",
        "unconsumedSteps",
      ),
    )
    .optional(),
  store: withMethods<Store>("is no store; give the one of the runtime", "read").optional(),
  trees: z.array(idOf("thread")).optional(),
})
  .refine(
    ({ providers = [], store }) => providers.length > 0 || store !== undefined,
    "nothing to look at; give `providers`, `store`, or both",
  )
  .refine(({ store, trees }) => trees === undefined || store !== undefined, {
    path: ["trees"],
    message: "are looked up in a store; give `store` too",
  });

/**
 * Holds that no script has steps left and that no mail is unread, unreadable, or delivered to a run that has not settled.
 * Dead letters were dealt with and do not count.
 * @throws Error with a line for each thing that is left, and the gates at which somebody still waits.
 * @throws RejectedError `INVALID_ARGUMENT` when there is nothing to look at, or a tree is not in the store.
 */
export async function assertAllConsumed(what: Consumable): Promise<void> {
  check("assertAllConsumed", consumable, what);
  const steps = (what.providers ?? []).flatMap((provider) => provider.unconsumedSteps());
  const left = steps.map(({ script, threadId, step, description }) => {
    const player = threadId === null ? "never played" : `by ${threadId}`;
    return `step ${step} of the script of ${script} (${player}): ${description}`;
  });
  if (what.store !== undefined) {
    left.push(...(await what.store.read((view) => mailLeft(view, what.trees))));
  }
  if (left.length > 0) {
    const waiting = (what.providers ?? []).flatMap(({ gates }) => gates.occupied());
    for (const gate of new Set(waiting)) left.push(`somebody waits at the gate ${gate}`);
  }
  if (left.length > 0) throw new Error(`Left over:\n${left.join("\n")}`);
}

function mailLeft(view: StoreView, only: readonly TreeId[] | undefined): readonly string[] {
  const trees = only ?? [...all((page) => view.trees(page))].map(({ treeId }) => treeId);
  const left: string[] = [];
  for (const tree of trees) {
    if (view.tree(tree) === undefined) {
      throw new RejectedError("INVALID_ARGUMENT", `trees: ${clip(tree)} is not in this store.`, {
        argument: "trees",
        value: clip(tree),
      });
    }
    for (const { threadId, path } of all((page) => view.agents(tree, ROOT_PATH, { ...page, closed: true }))) {
      for (const mail of all((page) => view.mailOf(threadId, page))) {
        if (mail.state !== "accepted" && mail.state !== "delivered") continue;
        const text = JSON.stringify(mail.content.text.slice(0, 60));
        left.push(`mail ${mail.seq} to ${path} (${mail.kind}, ${mail.state}): ${text}`);
      }
      for (const id of view.unreadable(threadId)) left.push(`mail ${id} to ${path} (unreadable)`);
    }
  }
  return left;
}

function* all<T>(page: (request: PageRequest) => Page<T>): Generator<T> {
  let after: string | null = null;
  do {
    const { rows, next }: Page<T> = page({ after, limit: 200 });
    yield* rows;
    after = next;
  } while (after !== null);
}
