/** Processes of a program under test, whatever group they are in. */
import { readdirSync, readFileSync } from "node:fs";

export interface RunningProcess {
  readonly pid: number;
  readonly command: string;
}

/** Those with `NAME=value` in their environment, which they hand on to what they start: one that has left its group is found too. */
export function processesWith(variable: string): RunningProcess[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      if (!readFileSync(`/proc/${name}/environ`, "utf8").split("\0").includes(variable)) return [];
      const command = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0").join(" ").trim();
      return [{ pid: Number(name), command }];
    } catch {
      // It has ended meanwhile, or is somebody else's.
      return [];
    }
  });
}
