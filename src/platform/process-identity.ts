/** Who this process is, and whether another process of this host is proved dead (REC-6). */
import { readdirSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import type { ProcessIdentity } from "../protocol/process-identity.ts";

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // Not a Linux host, or the process is gone: an empty text proves nothing.
    return "";
  }
}

/** Fields of /proc/<pid>/stat behind the name, which may hold anything; none when unknown. */
function processFields(pid: number): readonly string[] {
  const stat = readOrEmpty(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** Start time in ticks since boot. Empty when unknown. */
export function processStart(pid: number): string {
  return processFields(pid)[19] ?? "";
}

/** One that has ended and was not waited for yet still has its id. */
function hasEnded(state: string | undefined): boolean {
  return state === "Z" || state === "X";
}

/** Whether anybody of the group runs as far as this host can tell; `undefined` when it cannot. */
export function groupRuns(pgid: number): boolean | undefined {
  let names: string[];
  try {
    names = readdirSync("/proc");
  } catch {
    return undefined;
  }
  return names.some((name) => {
    if (!/^\d+$/.test(name)) return false;
    const [state, , group] = processFields(Number(name));
    return group === String(pgid) && !hasEnded(state);
  });
}

let self: ProcessIdentity | undefined;

export function ownIdentity(): ProcessIdentity {
  self ??= {
    host: hostname(),
    bootId: readOrEmpty("/proc/sys/kernel/random/boot_id").trim(),
    pid: process.pid,
    startedAt: processStart(process.pid),
  };
  return self;
}

/** True only when it is certain: same host, and the boot or the process is another. */
export function provenDead(owner: ProcessIdentity): boolean {
  const me = ownIdentity();
  if (owner.host !== me.host || me.bootId === "" || owner.bootId === "") return false;
  if (owner.bootId !== me.bootId) return true;
  try {
    process.kill(owner.pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
  if (hasEnded(processFields(owner.pid)[0])) return true;
  const started = processStart(owner.pid);
  return started !== "" && owner.startedAt !== "" && started !== owner.startedAt;
}
