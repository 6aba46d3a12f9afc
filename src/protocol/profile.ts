/**
 * Profiles: `default` keeps every rule of the contract, `codex` narrows it to the reference (runtime.md, Profiles). A
 * profile is data; code asks for the one trait it needs and never for the name.
 */
import type { Wake } from "./work.ts";

/** The profiles that a tree can have. */
export type ProfileName = "default" | "codex";

export interface Profile {
  readonly name: ProfileName;
  /** MBX-4, agents.md 49: a run started by the user samples its own input before it drains the mailbox. */
  readonly userRunDrainsLate: boolean;
  /** MBX-9, BUD-4: results are bounded and carry figures; else whole and bare. */
  readonly boundedResults: boolean;
  /** WRK-1, LST-1: outputs carry ids, works and unread counts. */
  readonly richOutputs: boolean;
  /** WRK-4: a work waits for the works under it. */
  readonly worksAwaitChildren: boolean;
  /** WRK-7, WRK-8. */
  readonly salvage: boolean;
  readonly outputSchemas: boolean;
  /** WRK-5: a result per work to `replyTo`, or a final answer per settled run to the path parent. */
  readonly results: "per_work" | "per_run";
  readonly defaultWake: Wake;
  /** WAI-3: `wait_agent` takes targets and returns content. */
  readonly richWait: boolean;
  readonly admission: "queue" | "reject";
  /** RES-2: residents counted per tree, as many as permits, the root not counted. */
  readonly residentsPerTree: boolean;
  /** INT-1, INT-5, INT-8. */
  readonly interruptOutput: "receipt" | "previous_status";
  readonly interruptedResults: boolean;
  readonly interruptQueuesTriggers: boolean;
  /** INT-3: what a tool has started and left running lives until its agent is unloaded; else until an interrupt at most. */
  readonly processesOutliveInterrupts: boolean;
  /** BUD-1: depth and number of children are limited. */
  readonly depthLimits: boolean;
  /** MBX-3, B49: mail to an idle root is trigger-turn. */
  readonly wakeOnAgentMessages: boolean;
  /** POL-2: a role's ceiling of effects and its choice of a provider count; else they are ignored and reported so. */
  readonly rolesCarryAuthority: boolean;
  /** SPN-1, SPN-7: bytes of what a spawn or a follow-up names; null is unbounded. A role's name is one that exists. */
  readonly nameBytes: Readonly<Record<"task_name" | "model" | "reasoning_effort", number>> | null;
  /** The default of `running`. */
  readonly running: number;
}

export const PROFILES: Readonly<Record<ProfileName, Profile>> = {
  default: {
    name: "default",
    userRunDrainsLate: false,
    boundedResults: true,
    richOutputs: true,
    worksAwaitChildren: true,
    salvage: true,
    outputSchemas: true,
    results: "per_work",
    defaultWake: "settled_only",
    richWait: true,
    admission: "queue",
    residentsPerTree: false,
    interruptOutput: "receipt",
    interruptedResults: true,
    interruptQueuesTriggers: false,
    processesOutliveInterrupts: false,
    depthLimits: true,
    wakeOnAgentMessages: false,
    rolesCarryAuthority: true,
    nameBytes: { task_name: 128, model: 256, reasoning_effort: 64 },
    running: 4,
  },
  codex: {
    name: "codex",
    userRunDrainsLate: true,
    boundedResults: false,
    richOutputs: false,
    worksAwaitChildren: false,
    salvage: false,
    outputSchemas: false,
    results: "per_run",
    defaultWake: "never",
    richWait: false,
    admission: "reject",
    residentsPerTree: true,
    interruptOutput: "previous_status",
    interruptedResults: false,
    interruptQueuesTriggers: true,
    processesOutliveInterrupts: true,
    depthLimits: false,
    wakeOnAgentMessages: false,
    rolesCarryAuthority: false,
    nameBytes: null,
    running: 3,
  },
};
