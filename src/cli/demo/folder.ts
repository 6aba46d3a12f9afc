/**
 * One folder, to be read and nothing else (the demo's tools stand on it).
 *
 * - F1 Nothing outside of the folder is read, whether asked for by `..`, by an absolute path or through a link.
 * - F2 Hidden names are neither listed nor read: they hold settings and keys. What is installed or built is left out of lists and walks.
 * - F3 Only plain files are opened, so that no pipe or device can hold a tool.
 */
import { constants, realpathSync, statSync } from "node:fs";
import { lstat, open, readdir, realpath } from "node:fs/promises";
import { isAbsolute, join, relative, resolve, sep } from "node:path";
import { RejectedError } from "../../protocol/errors.ts";

/** A file found by a walk; its path is relative to the folder, with `/`. */
export interface FoundFile {
  readonly path: string;
  readonly bytes: number;
}

export interface Entry {
  readonly name: string;
  readonly kind: "file" | "folder" | "link" | "other";
  readonly bytes: number;
}

/** Folders of installed packages and of built files. */
const LEFT_OUT = new Set(["node_modules", "dist", "coverage"]);
const MOST_FILES = 50_000;
const MOST_BYTES = 4 * 1024 * 1024;
const SNIFFED_BYTES = 8192;

export class Folder {
  readonly path: string;

  /** @throws RejectedError when there is no such folder. */
  constructor(path: string) {
    this.path = realFolder(path);
  }

  /** @throws RejectedError for a name outside, hidden or missing. */
  async list(path: string): Promise<Entry[]> {
    const place = await this.#inside(path, "folder");
    const found = await readdir(place, { withFileTypes: true });
    const entries: Entry[] = [];
    for (const entry of found) {
      if (isHidden(entry.name) || (entry.isDirectory() && LEFT_OUT.has(entry.name))) continue;
      const kind = entry.isFile()
        ? "file"
        : entry.isDirectory()
          ? "folder"
          : entry.isSymbolicLink()
            ? "link"
            : "other";
      const bytes = kind === "file" ? (await lstat(join(place, entry.name))).size : 0;
      entries.push({ name: entry.name, kind, bytes });
    }
    return entries.toSorted((a, b) => order(a.name, b.name));
  }

  /** The text of a file, or null for one that is not text. @throws RejectedError as `list`, and for what is too large. */
  async read(path: string): Promise<string | null> {
    const place = await this.#inside(path, "file");
    const file = await open(place, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const { size } = await file.stat();
      if (size > MOST_BYTES) throw refused(path, `has ${size} bytes and at most ${MOST_BYTES} are read`);
      const bytes = await file.readFile();
      return bytes.subarray(0, SNIFFED_BYTES).includes(0) ? null : bytes.toString("utf8");
    } finally {
      await file.close();
    }
  }

  /** All files at and below a path, in the order of their paths. Links are not followed. */
  async walk(path: string, signal: AbortSignal): Promise<FoundFile[]> {
    const start = await this.#inside(path, "folder");
    const files: FoundFile[] = [];
    const visit = async (folder: string): Promise<void> => {
      signal.throwIfAborted();
      for (const entry of await readdir(folder, { withFileTypes: true })) {
        if (isHidden(entry.name) || files.length >= MOST_FILES) continue;
        const place = join(folder, entry.name);
        if (entry.isDirectory() && !LEFT_OUT.has(entry.name)) await visit(place);
        if (!entry.isFile()) continue;
        const { size } = await lstat(place);
        files.push({ path: relative(this.path, place).split(sep).join("/"), bytes: size });
      }
    };
    await visit(start);
    return files.toSorted((a, b) => order(a.path, b.path));
  }

  /** The real place of a path inside of the folder. */
  async #inside(path: string, kind: "file" | "folder"): Promise<string> {
    if (path.includes("\0")) throw refused(path, "is no path");
    if (isAbsolute(path)) throw refused(path, "is absolute; give a path below the folder");
    const asked = resolve(this.path, path);
    if (!contains(this.path, asked)) throw refused(path, "leads out of the folder");
    if (relative(this.path, asked).split(sep).some(isHidden)) throw refused(path, "is hidden");
    let place;
    try {
      place = await realpath(asked);
    } catch (cause) {
      throw refused(path, "does not exist", cause);
    }
    // Where its links lead, which the name alone does not say.
    if (!contains(this.path, place)) throw refused(path, "is a link that leads out of the folder");
    if (relative(this.path, place).split(sep).some(isHidden)) throw refused(path, "is hidden");
    const found = await lstat(place);
    if (kind === "file" ? found.isFile() : found.isDirectory()) return place;
    throw refused(path, `is no ${kind}`);
  }
}

function realFolder(path: string): string {
  try {
    const real = realpathSync(path);
    if (statSync(real).isDirectory()) return real;
  } catch (cause) {
    throw new RejectedError(
      "INVALID_ARGUMENT",
      `there is no folder ${path}; give one that exists.`,
      { argument: "dir", value: path },
      cause,
    );
  }
  throw new RejectedError("INVALID_ARGUMENT", `${path} is not a folder; give the folder that it is in.`, {
    argument: "dir",
    value: path,
  });
}

function contains(folder: string, path: string): boolean {
  const step = relative(folder, path);
  return step === "" || (step !== ".." && !step.startsWith(`..${sep}`) && !isAbsolute(step));
}

function isHidden(name: string): boolean {
  return name.startsWith(".") && name !== ".";
}

/** The same on every machine, whatever its language. */
function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function refused(path: string, why: string, cause?: unknown): RejectedError {
  const shown = path.length > 120 ? `${path.slice(0, 120)}…` : path;
  return new RejectedError("INVALID_ARGUMENT", `\`${shown}\` ${why}.`, { argument: "path" }, cause);
}
