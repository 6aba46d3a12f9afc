/**
 * Where a folder stands in its repository, and a scratch repository over the same objects and files.
 *
 * - R1 Everything that reads or writes files goes through the scratch: an own index, no references, no configuration but
 *   the few values copied in. So the user's index and HEAD are out of reach, and no filter or hook of a configuration that
 *   an agent may have written is ever run. Files under a filter (such as LFS) are taken and written as they stand.
 * - R2 The real repository is asked for facts, and given references and objects.
 */
import { copyFile, mkdir, mkdtemp, realpath, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { firstLine, type GitCall, GitFailure, type GitRunner, textOf } from "./git-process.ts";

/** The first version that can be told to read no configuration of the user. */
const OLDEST = [2, 32] as const;

export interface Repository {
  /** The folder that was asked about, without links. */
  readonly folder: string;
  readonly toplevel: string;
  /** Of the folder below the toplevel: empty, or ending with a slash. */
  readonly prefix: string;
  readonly gitDir: string;
  readonly commonDir: string;
  readonly objects: string;
  readonly index: string;
  readonly sharedIndex: string;
  readonly format: "sha1" | "sha256";
  readonly head: string;
}

/** @throws GitFailure that lasts when there is nothing that could be captured. */
export async function findRepository(git: GitRunner, folder: string): Promise<Repository> {
  const cwd = await realFolder(folder);
  await requireVersion(git, cwd);
  const facts = await factsAt(git, cwd);
  if (facts === null) throw await whyNot(git, cwd);
  const [toplevel, prefix, gitDir, commonDir, objects, index, format, head, sharedIndex = ""] = facts;
  if (format !== "sha1" && format !== "sha256")
    throw new GitFailure(`objects named by ${format} are unknown`, true);
  return { folder: cwd, toplevel, prefix, gitDir, commonDir, objects, index, sharedIndex, format, head };
}

type Facts = [string, string, string, string, string, string, string, string, string?];

const FACTS = [
  ["--show-toplevel"],
  ["--show-prefix"],
  ["--absolute-git-dir"],
  ["--git-common-dir"],
  ["--git-path", "objects"],
  ["--git-path", "index"],
  ["--show-object-format"],
  ["--verify", "HEAD^{commit}"],
  // Says nothing where there is none.
  ["--shared-index-path"],
];

/** In one call, a line each; one by one where a name holds a line's end. Null when git has no answer. */
async function factsAt(git: GitRunner, cwd: string): Promise<Facts | null> {
  const ask = (words: readonly string[]) =>
    git.run(["rev-parse", "--path-format=absolute", ...words], { cwd });
  // Several answers in one call are not verified; what is no commit shows in its line.
  const together = FACTS.map((words) => words.filter((word) => word !== "--verify"));
  const all = await ask(together.flat());
  if (all.code !== 0) return null;
  const lines = textOf(all.out).split("\n").slice(0, -1);
  if (/^[0-9a-f]{40,64}$/.test(lines[7] ?? "") && lines.length <= FACTS.length) return lines as Facts;
  const answers: string[] = [];
  for (const words of FACTS) {
    const { code, out } = await ask(words);
    if (code !== 0) return null;
    answers.push(textOf(out).replace(/\n$/, ""));
  }
  return answers as Facts;
}

async function whyNot(git: GitRunner, cwd: string): Promise<GitFailure> {
  const { code, out, err } = await git.run(["rev-parse", "--is-inside-work-tree"], { cwd });
  if (code !== 0) return new GitFailure(`the folder is in no git repository (${firstLine(err, code)})`, true);
  if (out.trim() !== "true") return new GitFailure("the repository is bare: it has no files", true);
  const head = await git.run(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], { cwd });
  if (head.code !== 0) return new GitFailure("the repository has no commit yet", true);
  return new GitFailure("git does not say where the repository is");
}

async function realFolder(folder: string): Promise<string> {
  try {
    const real = await realpath(folder);
    if ((await stat(real)).isDirectory()) return real;
  } catch {
    // Said below.
  }
  throw new GitFailure("the folder is not there", true);
}

/** Places where git was looked for and is new enough. */
const newEnough = new Set<string | undefined>();

async function requireVersion(git: GitRunner, cwd: string): Promise<void> {
  const place = process.env["PATH"];
  if (newEnough.has(place)) return;
  const said = await git.need(["version"], { cwd });
  const [, major = "0", minor = "0"] = /(\d+)\.(\d+)/.exec(said) ?? [];
  const enough = Number(major) > OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) >= OLDEST[1]);
  if (!enough)
    throw new GitFailure(`git ${major}.${minor} is too old; ${OLDEST.join(".")} or newer is needed`, true);
  newEnough.add(place);
}

/** Settings that decide what a file's content is, or whether it is ignored. None of them runs anything. */
const COPIED =
  "^core\\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode|excludesfile|checkstat|trustctime)$";

/** A repository of its own over the objects and files of another. */
export class Scratch implements AsyncDisposable {
  readonly git: GitRunner;
  readonly repository: Repository;
  readonly #home: string;
  readonly #env: Readonly<Record<string, string>>;

  private constructor(git: GitRunner, repository: Repository, home: string, env: Record<string, string>) {
    this.git = git;
    this.repository = repository;
    this.#home = home;
    this.#env = env;
  }

  static async open(git: GitRunner, repository: Repository): Promise<Scratch> {
    const home = await mkdtemp(join(tmpdir(), "coppice-git-"));
    try {
      const settings = await git.run(["config", "-z", "--get-regexp", COPIED], { cwd: repository.folder });
      await layOut(home, repository);
      return new Scratch(git, repository, home, {
        ...copied(textOf(settings.out)),
        GIT_DIR: home,
        GIT_WORK_TREE: repository.toplevel,
        GIT_OBJECT_DIRECTORY: repository.objects,
        GIT_CONFIG_GLOBAL: "/dev/null",
        GIT_CONFIG_SYSTEM: "/dev/null",
      });
    } catch (error) {
      await rm(home, { recursive: true, force: true });
      throw error;
    }
  }

  /** Begins with a copy of the user's index: what it knows of unchanged files need not be read again. */
  async copyIndex(): Promise<void> {
    const { index, sharedIndex } = this.repository;
    const mine = join(this.#home, "index");
    let found;
    try {
      found = await stat(index);
      await copyFile(index, mine);
      if (sharedIndex !== "") await copyFile(sharedIndex, join(this.#home, basename(sharedIndex)));
    } catch {
      // None yet: every file is looked at.
      await rm(mine, { force: true });
      return;
    }
    // A file that was written after the index looks unchanged when the copy is taken for the newer one.
    const second = Math.floor(found.mtimeMs / 1000);
    await utimes(mine, second, second);
  }

  /** Where the index of this repository is; `side` is another beside it. */
  index(side?: "side"): string {
    return join(this.#home, side === undefined ? "index" : "index-side");
  }

  run(args: readonly string[], call: Partial<GitCall> = {}) {
    return this.git.run(args, this.#call(call));
  }

  need(args: readonly string[], call: Partial<GitCall> = {}): Promise<string> {
    return this.git.need(args, this.#call(call));
  }

  #call(call: Partial<GitCall>): GitCall {
    return { cwd: this.repository.folder, ...call, env: { ...this.#env, ...call.env } };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#home, { recursive: true, force: true });
  }
}

async function layOut(home: string, { commonDir, format }: Repository): Promise<void> {
  await Promise.all(["objects", "refs", "info"].map((name) => mkdir(join(home, name))));
  await writeFile(join(home, "HEAD"), "ref: refs/heads/scratch\n");
  const extensions = format === "sha256" ? "[extensions]\n\tobjectFormat = sha256\n" : "";
  const version = format === "sha256" ? 1 : 0;
  await writeFile(
    join(home, "config"),
    `[core]\n\trepositoryformatversion = ${version}\n\tbare = false\n${extensions}`,
  );
  for (const name of ["exclude", "attributes"]) {
    // Most repositories have neither.
    await copyFile(join(commonDir, "info", name), join(home, "info", name)).catch(() => undefined);
  }
}

function copied(settings: string): Record<string, string> {
  const rows = settings.split("\0").filter((row) => row !== "");
  const env: Record<string, string> = { GIT_CONFIG_COUNT: String(rows.length) };
  for (const [at, row] of rows.entries()) {
    const end = row.indexOf("\n");
    env[`GIT_CONFIG_KEY_${at}`] = end === -1 ? row : row.slice(0, end);
    env[`GIT_CONFIG_VALUE_${at}`] = end === -1 ? "true" : row.slice(end + 1);
  }
  return env;
}
