/**
 * Commands whose effect is in no commit (lineage C3.12, REC-2): that one was begun is stored before its effect, in the place where its
 * answer will be, so that nobody does it again over what has come since.
 */
import { forgetAt, noteAt, placeOfCommand, recallAt, usedBefore } from "./idempotency.ts";
import { askedOf, type Given } from "./inbox.ts";
import type { Transaction } from "./transaction.ts";

/** For a command that may come again: under its id, or in the inbox. */
export interface Mark {
  /**
   * A part of the commit before the effect. True when it was begun before, and nobody has told how that ended.
   * @throws RejectedError `COMMAND_ID_CONFLICT` when its id was used meanwhile; `answerOf` tells whether for the same command.
   */
  readonly begin: (tx: Transaction) => boolean;
  /** It was refused, and has had no effect. */
  readonly forget: (tx: Transaction) => void;
}

/** Null for one without an id, which nobody can ask for again. */
export function markOf(given: Given): Mark | null {
  if (given.commandId === undefined) return null;
  const place = placeOfCommand(given.commandId);
  const asked = askedOf(given);
  return {
    begin({ store }) {
      const known = recallAt(store, place, asked);
      if (known === undefined) noteAt(store, place, asked, null);
      else if (known !== null) throw usedBefore(place);
      return known === null;
    },
    forget: ({ store }) => forgetAt(store, place),
  };
}
