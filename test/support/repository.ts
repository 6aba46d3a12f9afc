/** Real git repositories in temporary folders, and all that their user can see of one. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";

const IDENTITY = { NAME: "Test", EMAIL: "test@localhost", DATE: "1767225600 +0000" };

export function temporaryFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "coppice-workspace-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

export class TestRepository {
  readonly folder: string;

  constructor(folder: string = temporaryFolder()) {
    this.folder = folder;
    this.git("init", "--quiet", "--initial-branch=main");
    this.git("config", "commit.gpgsign", "false");
  }

  git(...args: string[]): string {
    const env = Object.entries(IDENTITY).flatMap(([what, value]) =>
      ["AUTHOR", "COMMITTER"].map((role) => [`GIT_${role}_${what}`, value]),
    );
    const own = Object.entries(process.env).filter(([name]) => !name.startsWith("GIT_"));
    return execFileSync("git", args, {
      cwd: this.folder,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...Object.fromEntries(own), ...Object.fromEntries(env), GIT_OPTIONAL_LOCKS: "0" },
    });
  }

  write(name: string, text: string | Buffer): string {
    const path = join(this.folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  }

  read(name: string): string {
    return readFileSync(join(this.folder, name), "utf8");
  }

  commit(files: Readonly<Record<string, string>>): void {
    for (const [name, text] of Object.entries(files)) this.write(name, text);
    this.git("add", "--all");
    this.git("commit", "--quiet", "--allow-empty", "-m", "next");
  }

  /** A hook of each kind that leaves a trace when it runs. */
  trapHooks(): string {
    const trace = join(this.folder, ".git", "hook-has-run");
    for (const name of [
      "pre-commit",
      "post-checkout",
      "post-index-change",
      "reference-transaction",
      "post-commit",
    ]) {
      const path = join(this.folder, ".git", "hooks", name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, `#!/bin/sh\necho ${name} >> '${trace}'\n`);
      chmodSync(path, 0o755);
    }
    return trace;
  }

  /** Everything of the user's, byte by byte, but for objects and our own references. */
  seen(): Readonly<Record<string, string>> {
    const files: Record<string, string> = {};
    const walk = (at: string): void => {
      for (const entry of readdirSync(join(this.folder, at), { withFileTypes: true })) {
        const name = join(at, entry.name);
        if (name === ".git/objects" || name === ".git/refs/coppice") continue;
        if (entry.isDirectory()) walk(name);
        else if (entry.isFile()) files[name] = readFileSync(join(this.folder, name)).toString("latin1");
        else files[name] = "no file";
      }
    };
    walk("");
    const status = this.git("status", "--porcelain=v2", "--branch", "--ignored", "-z");
    return { ...files, status, stash: this.git("stash", "list"), branches: this.git("branch", "--all") };
  }
}
