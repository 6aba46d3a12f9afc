/**
 * Checkpoints and worktrees of a workspace, as ports. A checkpoint is the state of a folder under a private name; taking
 * one changes nothing that its user sees. What a port cannot do is an answer, never an error: a run never fails by it.
 */
import type { Clock } from "../clock.ts";

/** How long a call may take. What it has begun is ended with it. */
export interface Within {
  readonly clock: Clock;
  readonly limitMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** It was not done. `lasting`: nothing will be captured here until somebody changes the folder or the machine. */
export interface Missing {
  readonly status: "missing";
  readonly reason: string;
  readonly lasting: boolean;
}

/** What is to be captured, and as what. */
export interface CaptureRequest {
  /** Name of the checkpoint, such as `<thread>/<run>`; one of the same name is replaced. */
  readonly name: string;
  readonly message: string;
  /** An earlier checkpoint that the summary compares with; else what the folder's history has last. */
  readonly since?: string | undefined;
}

/** A checkpoint that was taken. */
export interface Captured {
  readonly status: "ready";
  readonly ref: string;
  readonly tree: string;
  /** Such as `3 files changed, +10 -2`. */
  readonly summary: string;
  /** Files that differ, within the folder; not all of them where they are many. */
  readonly files: readonly string[];
  /** What is not in it: files too large, repositories inside of the folder, what could not be read. */
  readonly omitted: readonly string[];
}

/** How two states of a folder differ. */
export interface Difference {
  readonly status: "ready";
  readonly summary: string;
  readonly files: readonly string[];
  /** As text, cut off at the bytes that were asked for. */
  readonly patch: string;
}

/** How much of a checkpoint is written back. */
export interface RestoreRequest {
  /** Files or folders within the folder, `.` for all of it, and one at least; default: all. */
  readonly paths?: readonly string[] | undefined;
  /** Also over what no checkpoint can hold: it is lost then. */
  readonly overwrite?: boolean | undefined;
}

/** A checkpoint that was written back. */
export interface Restored {
  readonly status: "ready";
  /** What stood there before, under a name of its own: it stays until the checkpoint is removed. */
  readonly before: string;
  readonly written: readonly string[];
  readonly removed: readonly string[];
}

/** Nothing was written. */
export interface Refused {
  readonly status: "refused";
  readonly reason: string;
  /** What would have been lost. */
  readonly paths: readonly string[];
}

/** Checkpoints of folders. A `ref` is what `capture` has answered. */
export interface WorkspaceCapture {
  available(folder: string, within: Within): Promise<{ readonly status: "ready" } | Missing>;
  capture(folder: string, request: CaptureRequest, within: Within): Promise<Captured | Missing>;
  /** From one checkpoint to another, or to the folder as it is. */
  diff(
    folder: string,
    between: { readonly from: string; readonly to?: string; readonly patchBytes?: number },
    within: Within,
  ): Promise<Difference | Missing>;
  /**
   * Writes the files of the folder as they were and removes those that came since. What is there now is captured first.
   * @throws RejectedError `INVALID_ARGUMENT` for paths that lead out of the folder, or to nothing; nothing was written then.
   */
  restore(
    folder: string,
    ref: string,
    request: RestoreRequest,
    within: Within,
  ): Promise<Restored | Refused | Missing>;
  /** With what stood there before it was written back. One that is not there is removed already. */
  remove(folder: string, ref: string, within: Within): Promise<{ readonly status: "ready" } | Missing>;
}

/** A worktree that was made. */
export interface Worktree {
  readonly status: "ready";
  /** The worktree itself. */
  readonly path: string;
  /** In it, the folder that stands for the one that was asked about. */
  readonly folder: string;
  readonly repository: string;
  /** The commit whose content it began with. */
  readonly base: string;
}

/** Of which name and owner a worktree is to be. */
export interface WorktreeRequest {
  /** Whose it is: the sweep of an owner looks at its own alone. */
  readonly owner: string;
  readonly name: string;
  /** A checkpoint whose files it begins with; else it begins with the last commit. */
  readonly checkpoint?: string | undefined;
}

/** Worktrees of repositories, in a folder of their own. */
export interface Worktrees {
  add(folder: string, request: WorktreeRequest, within: Within): Promise<Worktree | Missing>;
  /** Removes it when it holds nothing that it did not begin with; what was never handed out goes in any case. */
  end(
    path: string,
    within: Within,
  ): Promise<{ readonly status: "removed" } | { readonly status: "kept"; readonly reason: string }>;
  /** Removes it with all that is in it. */
  remove(path: string, within: Within): Promise<{ readonly status: "ready" } | Missing>;
  /** Those of an owner, whole or half made. */
  list(owner: string): Promise<readonly string[]>;
}
