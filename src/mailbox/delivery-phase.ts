/**
 * Whether mail may still join the run that is under way (MBX-5; agents.md 47, 48): a pure machine of three states.
 *
 * - `open` mail joins at the next request.
 * - `held` so, and work of this run waits for that request: an answer does not close the run to mail.
 * - `deferred` the answer is out; mail of either kind waits for the next run, until a steer or a tool call reopens this one.
 */
export type DeliveryPhase = "open" | "held" | "deferred";

export type DeliveryEvent =
  /** The model has given an answer. It may be reported late, after a steer: then it changes nothing. */
  | "answered"
  /** Input of the user for this run. */
  | "steered"
  | "tool_called"
  /** Trigger-turn mail is pending. Queue-only mail has no event: it holds nothing open. */
  | "trigger_pending"
  /** A request was composed, with all that waited for it. */
  | "composed";

/** The phase in which a run begins. */
export const FIRST_PHASE: DeliveryPhase = "open";

const NEXT: Readonly<Record<DeliveryPhase, Readonly<Record<DeliveryEvent, DeliveryPhase>>>> = {
  open: {
    answered: "deferred",
    steered: "held",
    tool_called: "held",
    trigger_pending: "held",
    composed: "open",
  },
  held: { answered: "held", steered: "held", tool_called: "held", trigger_pending: "held", composed: "open" },
  deferred: {
    answered: "deferred",
    steered: "held",
    tool_called: "held",
    trigger_pending: "deferred",
    composed: "deferred",
  },
};

export function nextPhase(phase: DeliveryPhase, event: DeliveryEvent): DeliveryPhase {
  return NEXT[phase][event];
}

/** Whether the run's next request takes mail. */
export function takesMail(phase: DeliveryPhase): boolean {
  return phase !== "deferred";
}
