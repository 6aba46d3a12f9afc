/** Processes by name, so that one can be proved dead (REC-6). */

/** Names a process so that another on the same host can prove it dead (REC-6). */
export interface ProcessIdentity {
  readonly host: string;
  readonly bootId: string;
  readonly pid: number;
  /** Start time of the process in the unit of its system, so that a reused pid is not taken for it. */
  readonly startedAt: string;
}

/** Whether a process of this host is proved dead: its lease counts for nothing then. Of other hosts nothing is known. */
export type ProvenDead = (owner: ProcessIdentity) => boolean;
