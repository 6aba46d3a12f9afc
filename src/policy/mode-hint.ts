/**
 * When an agent may delegate (POL-4): a text to the model beside its instructions. Which text applies is decided anew
 * for each run, from the run's model and effort; it is sent only when it differs from the one sent last.
 */
export type DelegationMode = "configured" | "explicit_request_only" | "proactive";

export interface ModeHint {
  readonly mode: DelegationMode;
  /** Empty: nothing is sent. */
  readonly text: string;
}

const TEXTS = {
  explicit_request_only:
    "Delegation is on request only. Start other agents when the user, or instructions that apply here, ask for " +
    "agents, delegation or parallel work; otherwise do the work yourself. This replaces any earlier word on delegation.",
  proactive:
    "Delegation is up to you. Where parts of the work are independent, and handing them to other agents saves time or " +
    "makes the result better, do so without being asked. What the user says about it comes first. This replaces any " +
    "earlier word on delegation.",
} as const;

/** The effort at which a model is trusted to delegate by itself; no other counts, however high. */
const PROACTIVE_EFFORT = "ultra";

/** A configured text first, an empty one too; then the model's own; then the effort decides. */
export function chooseModeHint(input: {
  readonly configured: string | null;
  readonly ofModel: string | null | undefined;
  readonly effort: string | null;
}): ModeHint {
  const text = input.configured ?? input.ofModel ?? null;
  if (text !== null) return { mode: "configured", text };
  const mode = input.effort === PROACTIVE_EFFORT ? "proactive" : "explicit_request_only";
  return { mode, text: TEXTS[mode] };
}

/** The text to send now, or null. A suppressed hint sends nothing and takes nothing back. */
export function hintToSend(hint: ModeHint, sent: string | null): string | null {
  return hint.text === "" || hint.text === sent ? null : hint.text;
}
