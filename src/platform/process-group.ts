/**
 * Processes in groups of their own, so that one and all that it starts can be ended together (REC-4).
 *
 * - G1 A started process waits until it is let go: nothing runs that is not registered yet. When whoever started it dies
 *   before that, it ends without having run.
 * - G2 One on a leash does not outlive whoever started it, however that ends: its group is killed.
 * - G3 A group is ended only while its leader is the process that was started, or is gone: a reused id is left alone.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type { Clock } from "./clock.ts";
import type { ProcessEnd, ProcessSpec, StartProcess } from "./process.ts";
import { groupRuns, processStart } from "./process-identity.ts";

/** A process that leads a group and waits to be let go. */
export interface ProcessGroupLeader {
  readonly pgid: number;
  /** Start time of the leader, in the unit of its system. */
  readonly startedAt: string;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when the leader has ended; others of its group may go on. */
  readonly exited: Promise<ProcessEnd>;
  letGo(): void;
  /** Ends it before it has run. */
  abandon(): void;
}

/** Waits for a line on its fourth channel, then becomes the command; at the end of that channel it ends. */
const WAITING = 'read -r _ <&3 || exit 125; exec 3<&-; exec "$0" "$@"';
/** Leaves somebody in the group who waits for the end of that channel, and holds no other one. */
const LEASHED =
  'read -r _ <&3 || exit 125; (read -r _ <&3; kill -9 0) </dev/null >/dev/null 2>&1 & exec 3<&-; exec "$0" "$@"';

/** @throws Error when no process can be started. */
export function startGroup(
  spec: ProcessSpec,
  { leashed = false }: { readonly leashed?: boolean } = {},
): Promise<ProcessGroupLeader> {
  const script = leashed ? LEASHED : WAITING;
  const child = spawn("/bin/sh", ["-c", script, spec.command, ...(spec.args ?? [])], {
    detached: true,
    stdio: ["pipe", "pipe", "pipe", "pipe"],
    ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
    ...(spec.env === undefined ? {} : { env: spec.env }),
  });
  const exited = new Promise<ProcessEnd>((resolve) =>
    child.once("exit", (code, signal) => resolve({ code, signal })),
  );
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("spawn", () => resolve(leaderOf(child, exited, leashed)));
  });
}

function leaderOf(child: ChildProcess, exited: Promise<ProcessEnd>, leashed: boolean): ProcessGroupLeader {
  const gate = child.stdio[3] as Writable;
  // It may be dead before it is let go; that shows in `exited`.
  gate.on("error", () => undefined);
  const pgid = child.pid!;
  return {
    pgid,
    startedAt: processStart(pgid),
    stdin: child.stdin!,
    stdout: child.stdout!,
    stderr: child.stderr!,
    exited,
    letGo: () => void (leashed ? gate.write("\n") : gate.end("\n")),
    abandon: () => void gate.end(),
  };
}

/** Whether anybody of the group lives. Where nobody collects orphans (a container without an init), the dead keep their id. */
export function groupLives(pgid: number): boolean {
  try {
    process.kill(-pgid, 0);
  } catch {
    return false;
  }
  return groupRuns(pgid) ?? true;
}

/** Signals everybody in a group. False when it is not that group any more, or nobody is left. */
export function signalGroup(pgid: number, startedAt: string, signal: "SIGTERM" | "SIGKILL"): boolean {
  const leader = processStart(pgid);
  if (leader !== "" && leader !== startedAt) return false;
  try {
    process.kill(-pgid, signal);
    return true;
  } catch {
    return false;
  }
}

/** Asks a group to end, and makes it after the grace time. */
function endGroup(
  clock: Clock,
  graceMs: number,
  { pgid, startedAt }: Pick<ProcessGroupLeader, "pgid" | "startedAt">,
): void {
  if (!signalGroup(pgid, startedAt, "SIGTERM")) return;
  clock.setTimer(graceMs, () => signalGroup(pgid, startedAt, "SIGKILL"), { keepAlive: true });
}

/** How often a group whose leader is gone is looked at. */
const LOOK_MS = 1000;

/** Ends a group with `lifetime`. A group that has gone before is not signalled any more: its id may be another's by then. */
export async function endWith(
  lifetime: AbortSignal,
  clock: Clock,
  graceMs: number,
  leader: Pick<ProcessGroupLeader, "pgid" | "startedAt" | "exited">,
): Promise<void> {
  const end = (): void => endGroup(clock, graceMs, leader);
  lifetime.addEventListener("abort", end, { once: true });
  await leader.exited;
  // What the leader has left behind may go on until the group is ended.
  while (groupLives(leader.pgid)) await new Promise<void>((look) => clock.setTimer(LOOK_MS, look));
  lifetime.removeEventListener("abort", end);
}

/** For whoever owns no tree: registered nowhere, so such a process is for as long as its owner looks at it. */
export function unregisteredProcesses(clock: Clock, graceMs: number): StartProcess {
  return async (spec, lifetime) => {
    lifetime.throwIfAborted();
    const leader = await startGroup(spec, { leashed: true });
    const { pgid, startedAt, stdin, stdout, stderr, exited } = leader;
    void endWith(lifetime, clock, graceMs, leader);
    leader.letGo();
    return { pid: pgid, startedAt, stdin, stdout, stderr, exited };
  };
}
