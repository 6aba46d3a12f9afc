/** Who may be unloaded, and who first (RES-3). Pure: facts in, answer out; acting on it is `slots.ts`'s and control's. */

/** What is known of a loaded agent at the moment of asking. */
export interface UnloadFacts {
  /** Its last run is settled, or it never ran. A start that delivers a handoff or forks natively is a run that is not settled. */
  readonly lastRunSettled: boolean;
  /** The only open calls of its run are waits, and its adapter can park them; one that a budget holds up has none. */
  readonly inParkableWait: boolean;
  /** A run of it is reserved. */
  readonly reserved: boolean;
  /** Trigger-turn mail that may start a run now. */
  readonly triggerMailPending: boolean;
  /** Any other mail. */
  readonly queueOnlyMailPending: boolean;
  /** A question or an approval. */
  readonly requestPending: boolean;
  /** Its configuration keeps it resident as long as it has any mail. */
  readonly pinPendingMail: boolean;
}

export function mayUnload(agent: UnloadFacts): boolean {
  return (
    (agent.lastRunSettled || agent.inParkableWait) &&
    !agent.reserved &&
    (!agent.triggerMailPending || agent.inParkableWait) &&
    !agent.requestPending
  );
}

export function sameFacts(one: UnloadFacts, other: UnloadFacts): boolean {
  return (Object.keys(one) as (keyof UnloadFacts)[]).every((fact) => one[fact] === other[fact]);
}

/** Lower goes first; least recently used decides within a rank. */
export const UNLOAD_RANKS = ["no_mail", "mail", "pinned"] as const;
export type UnloadRank = (typeof UNLOAD_RANKS)[number];

/**
 * The rank of an agent among those that may be unloaded, null for all others. `pinned` ones go only for a wake, a return or
 * a work that is committed already; a spawn or follow-up is refused before its commit instead.
 */
export function unloadRank(agent: UnloadFacts): UnloadRank | null {
  if (!mayUnload(agent)) return null;
  if (!agent.triggerMailPending && !agent.queueOnlyMailPending) return "no_mail";
  return agent.pinPendingMail ? "pinned" : "mail";
}
