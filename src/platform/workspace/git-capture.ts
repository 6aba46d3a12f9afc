/**
 * Checkpoints by the system's git: a commit of the folder's content under `refs/coppice/checkpoints/`, made beside the
 * user's index, branch, stash and configuration (`repository.ts`). Untracked files are in it, ignored ones are not; of a
 * submodule only which commit it stands at; a symbolic link as a link. What is too large is left out and named, in the
 * checkpoint too: its restore leaves that as it is.
 */
import { RejectedError } from "../../protocol/errors.ts";
import { type CaptureBounds, commitTree, type Content, contentOf, subTree, summarise } from "./content.ts";
import { GitFailure, GitRunner, textOf } from "./git-process.ts";
import type { Captured, CaptureRequest, Missing, Within, WorkspaceCapture } from "./port.ts";
import { findRepository, type Repository, Scratch } from "./repository.ts";
import { restoreContent } from "./restore.ts";
import { scopeOf } from "./scope.ts";

const CHECKPOINTS = "refs/coppice/checkpoints/";
/** What stood in a folder before a checkpoint was restored: `<its name>-<commit>`, so that none takes the place of another. */
const BEFORE = "refs/coppice/restores/";
const OF_COMMIT = /-(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
const MEGABYTE = 1024 * 1024;
const BOUNDS: CaptureBounds = { fileBytes: 32 * MEGABYTE, totalBytes: 512 * MEGABYTE, files: 50_000 };
const PATCH_BYTES = 200_000;

/** Checkpoints by git. `bounds` are of what differs from the last commit. */
export function gitCapture(bounds: Partial<CaptureBounds> = {}): WorkspaceCapture {
  const most = { ...BOUNDS, ...bounds };
  return {
    available: (folder, within) =>
      attempt(within, async (git) => {
        await findRepository(git, folder);
        return { status: "ready" };
      }),
    async capture(folder, request, within) {
      const ref = refNamed(CHECKPOINTS, request.name);
      return inScratch(folder, within, async (scratch) => {
        const content = await contentOf(scratch, most);
        return record(scratch, content, () => ref, request, within);
      });
    },
    diff: (folder, { from, to, patchBytes = PATCH_BYTES }, within) =>
      inScratch(folder, within, async (scratch) => {
        const before = await treeOf(scratch, from);
        const now = to === undefined ? await contentOf(scratch, most) : null;
        const after = now === null ? await treeOf(scratch, to!) : now.tree;
        const told = await summarise(scratch, before, after, now?.omitted ?? []);
        const patch = await scratch.need(
          ["diff-tree", "-r", "-p", "--no-renames", "--no-color", before, after],
          {
            most: patchBytes,
            cut: true,
          },
        );
        return { status: "ready", ...told, patch: textOf(patch) };
      }),
    restore: (folder, ref, request, within) =>
      inScratch(folder, within, async (scratch) => {
        const wanted = await treeOf(scratch, ref);
        const content = await contentOf(scratch, most);
        const paths = await scopeOf(scratch, request.paths ?? [], [wanted, content.tree]);
        const { name } = partsOf(ref);
        const before = { name, message: `before ${ref} was restored` };
        const named = (commit: string): string => `${BEFORE}${name}-${commit}`;
        const kept = await record(scratch, content, named, before, within);
        const unknown = await omittedOf(scratch, ref);
        const asked = { ...request, paths };
        return restoreContent(scratch, content, { tree: wanted, omitted: unknown }, asked, kept.ref);
      }),
    remove: (folder, ref, within) =>
      attempt(within, async (git) => {
        const { name } = partsOf(ref);
        const repository = await findRepository(git, folder);
        const before = await restoresOf(git, repository, name);
        for (const one of [ref, ...before]) await updateRef(git, repository, ["-d", one]);
        return { status: "ready" };
      }),
  };
}

/** Runs it with calls of git that end in time; what git could not do is the answer. @throws what is no fault of git's. */
export async function attempt<T>(within: Within, act: (git: GitRunner) => Promise<T>): Promise<T | Missing> {
  using git = new GitRunner(within);
  try {
    return await act(git);
  } catch (error) {
    if (!(error instanceof GitFailure)) throw error;
    return { status: "missing", reason: error.message, lasting: error.lasting };
  }
}

export function inScratch<T>(
  folder: string,
  within: Within,
  act: (scratch: Scratch) => Promise<T>,
): Promise<T | Missing> {
  return attempt(within, async (git) => {
    await using scratch = await Scratch.open(git, await findRepository(git, folder));
    return await act(scratch);
  });
}

async function record(
  scratch: Scratch,
  { tree, omitted }: Content,
  named: (commit: string) => string,
  request: CaptureRequest,
  { clock }: Within,
): Promise<Captured> {
  const { git, repository } = scratch;
  const since = request.since === undefined ? null : await treeOf(scratch, request.since).catch(() => null);
  const told = await summarise(scratch, since ?? (await subTree(scratch, repository.head)), tree, omitted);
  const seconds = Math.floor(clock.now() / 1000);
  const left = omitted.length === 0 ? "" : `\n\n${OMITTED}${JSON.stringify(omitted)}`;
  const commit = await commitTree(scratch, repository, tree, `${request.message}${left}`, seconds);
  const ref = named(commit);
  await updateRef(git, repository, [ref, commit]);
  return { status: "ready", ref, tree, ...told, omitted: omitted.map(textOf) };
}

/** The one thing that is written to the real repository beside objects. */
export async function updateRef(
  git: GitRunner,
  repository: Repository,
  args: readonly string[],
): Promise<void> {
  await git.need([`--git-dir=${repository.gitDir}`, "update-ref", "--no-deref", ...args], {
    cwd: repository.folder,
  });
}

/** All that stood there before the checkpoint of this name was restored. */
async function restoresOf(git: GitRunner, repository: Repository, name: string): Promise<readonly string[]> {
  const args = [
    `--git-dir=${repository.gitDir}`,
    "for-each-ref",
    "--format=%(refname)",
    `${BEFORE}${name}-*`,
  ];
  const listed = await git.need(args, { cwd: repository.folder });
  return listed.split("\n").filter((one) => one !== "" && partsOf(one).name === name);
}

/** The tree that a checkpoint of ours holds. @throws GitFailure when there is none of this name. */
export async function treeOf({ git, repository }: Scratch, ref: string): Promise<string> {
  partsOf(ref);
  const found = await git.run(
    [`--git-dir=${repository.gitDir}`, "rev-parse", "--verify", "--quiet", `${ref}^{tree}`],
    { cwd: repository.folder },
  );
  if (found.code !== 0) throw new GitFailure(`there is no checkpoint ${ref} in the repository`);
  return found.out.trim();
}

/** Begins the last line of a checkpoint's message, which names what is not in it. */
const OMITTED = "Not captured: ";

/** What a checkpoint of ours has left out, byte by byte. */
async function omittedOf({ git, repository }: Scratch, ref: string): Promise<readonly string[]> {
  const args = [`--git-dir=${repository.gitDir}`, "log", "-1", "--format=%B", ref];
  const lines = textOf(await git.need(args, { cwd: repository.folder }))
    .trimEnd()
    .split("\n");
  const last = lines.at(-1)!;
  return last.startsWith(OMITTED) ? (JSON.parse(last.slice(OMITTED.length)) as string[]) : [];
}

const PART = /^[A-Za-z0-9][A-Za-z0-9_-]*(?:\/[A-Za-z0-9][A-Za-z0-9_-]*)*$/;

/** @throws RejectedError `INVALID_ARGUMENT` for a name that could be anything but a reference of ours. */
export function refNamed(folder: string, name: string): string {
  if (PART.test(name) && name.length <= 200) return `${folder}${name}`;
  throw new RejectedError(
    "INVALID_ARGUMENT",
    `\`${name}\` is no name of a checkpoint; use letters, digits, - and _, in parts divided by /.`,
    { argument: "name", value: name },
  );
}

/** The name of its checkpoint. @throws RejectedError `INVALID_ARGUMENT` for a reference that no capture has answered. */
function partsOf(ref: string): { readonly name: string } {
  const folder = [CHECKPOINTS, BEFORE].find((one) => ref.startsWith(one));
  if (folder !== undefined) {
    const rest = ref.slice(folder.length);
    const name = folder === BEFORE ? rest.replace(OF_COMMIT, "") : rest;
    refNamed(folder, name);
    return { name };
  }
  throw new RejectedError("INVALID_ARGUMENT", `\`${ref}\` is no checkpoint; give the \`ref\` of a capture.`, {
    argument: "ref",
    value: ref,
  });
}
