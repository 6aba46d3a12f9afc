/**
 * A home of its own for a real program: no setting, key or history of the person or machine that runs the tests reaches it, and
 * nothing that it leaves behind outlasts the test.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { processesWith } from "../../support/processes.ts";

export interface Home {
  readonly path: string;
  /** Where the program works. */
  readonly workspace: string;
  /** The whole environment of the program. */
  readonly env: Readonly<Record<string, string>>;
  /** Writes a file below the home. */
  write(file: string, text: string): string;
  /** Command lines of processes that run with this home, whatever group they are in. */
  processes(): string[];
  /** Ends all of them at once, as a crash would. */
  kill(): void;
}

/** Removed after the test, and whoever still runs in it is ended. */
export function makeHome(env: Readonly<Record<string, string>> = {}): Home {
  const path = mkdtempSync(join(tmpdir(), "coppice-real-"));
  const folder = (name: string): string => {
    mkdirSync(join(path, name), { recursive: true });
    return join(path, name);
  };
  const home: Home = {
    path,
    workspace: folder("workspace"),
    env: {
      HOME: path,
      TMPDIR: folder("tmp"),
      XDG_CONFIG_HOME: folder(".config"),
      XDG_DATA_HOME: folder(".local/share"),
      XDG_STATE_HOME: folder(".local/state"),
      XDG_CACHE_HOME: folder(".cache"),
      PATH: [dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter),
      LANG: "C.UTF-8",
      ...env,
    },
    write(file, text) {
      mkdirSync(dirname(join(path, file)), { recursive: true });
      writeFileSync(join(path, file), text);
      return join(path, file);
    },
    processes: () => processesWith(`HOME=${path}`).map(({ command }) => command),
    kill() {
      for (const { pid } of processesWith(`HOME=${path}`)) process.kill(pid, "SIGKILL");
    },
  };
  onTestFinished(() => {
    home.kill();
    rmSync(path, { recursive: true, force: true, maxRetries: 10 });
  });
  return home;
}
