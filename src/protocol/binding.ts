/** What a run is bound to, inside the bytes of its policy hash (lineage C1.4). Plain values: policy knows no thread. */
import type { ThreadId } from "./ids.ts";

export interface ThreadBinding {
  readonly id: ThreadId;
  readonly contextRevision: number;
  readonly contextDigest: string;
  /** On the first run of a fork: the snapshot of its source at the point of the fork (C5.5). */
  readonly inherited?: {
    readonly threadId: ThreadId;
    readonly revision: number;
    readonly digest: string;
  };
}
