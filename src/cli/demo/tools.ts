/** The demo's own tools: list, read, search and count, inside of the folder that the agent's workspace names. */
import { z } from "zod";
import { sha256 } from "../../platform/digest.ts";
import { RejectedError } from "../../protocol/errors.ts";
import { defineTool, type OwnTool, type ToolRun } from "../../tools/define-tool.ts";
import { Folder, type FoundFile } from "./folder.ts";

const MOST_ENTRIES = 500;
const MOST_LINES = 400;
const MOST_MATCHES = 50;
const SHOWN_CHARACTERS = 200;
const SHOWN_GROUPS = 12;

const path = z.string().max(1000).describe("Relative to the folder; `.` is the folder itself.");

export const demoTools: readonly OwnTool[] = [
  defineTool({
    name: "list_files",
    description:
      "Lists what is directly in a folder: names, kinds and sizes. Hidden names and what is installed or built are left out.",
    input: z.strictObject({ path: path.default(".") }),
    effects: ["read"],
    async run(asked, run) {
      const entries = await folderOf(run).list(asked.path);
      const more = entries.length - MOST_ENTRIES;
      return { path: asked.path, entries: entries.slice(0, MOST_ENTRIES), ...(more > 0 ? { more } : {}) };
    },
  }),
  defineTool({
    name: "read_file",
    description: `Reads a text file, at most ${MOST_LINES} lines at a time.`,
    input: z.strictObject({ path, from_line: z.number().int().min(1).default(1) }),
    effects: ["read"],
    async run(asked, run) {
      const text = await folderOf(run).read(asked.path);
      if (text === null) return { path: asked.path, binary: true };
      const lines = linesOf(text);
      const shown = lines.slice(asked.from_line - 1, asked.from_line - 1 + MOST_LINES);
      const next = asked.from_line + shown.length;
      return {
        path: asked.path,
        lines: lines.length,
        text: shown.map((line) => line.slice(0, SHOWN_CHARACTERS)).join("\n"),
        ...(next <= lines.length ? { next_line: next } : {}),
      };
    },
  }),
  defineTool({
    name: "search",
    description: `Finds the lines that hold a text, whatever its case. Shows ${MOST_MATCHES} of them and counts all.`,
    input: z.strictObject({ text: z.string().min(1).max(200), path: path.default(".") }),
    effects: ["read"],
    async run(asked, run) {
      const folder = folderOf(run);
      const wanted = asked.text.toLowerCase();
      const matches: { file: string; line: number; text: string }[] = [];
      const byFile: { file: string; matches: number }[] = [];
      let total = 0;
      for (const file of await folder.walk(asked.path, run.signal)) {
        run.signal.throwIfAborted();
        const text = await readable(folder, file);
        if (text === null) continue;
        let here = 0;
        linesOf(text).forEach((line, index) => {
          if (!line.toLowerCase().includes(wanted)) return;
          here += 1;
          if (matches.length < MOST_MATCHES) {
            matches.push({ file: file.path, line: index + 1, text: line.trim().slice(0, SHOWN_CHARACTERS) });
          }
        });
        if (here > 0) byFile.push({ file: file.path, matches: here });
        total += here;
      }
      const most = byFile.toSorted((a, b) => b.matches - a.matches).slice(0, SHOWN_GROUPS);
      return { text: asked.text, total, files: byFile.length, most, matches };
    },
  }),
  defineTool({
    name: "count",
    description:
      "Counts files and lines below a folder: by kind, by the folders in it, and the longest files. `names` is a digest " +
      "of all paths: it changes when a file is renamed, added or removed.",
    input: z.strictObject({ path: path.default(".") }),
    effects: ["read"],
    async run(asked, run) {
      const folder = folderOf(run);
      const files = await folder.walk(asked.path, run.signal);
      const counted: { path: string; lines: number }[] = [];
      for (const file of files) {
        run.signal.throwIfAborted();
        const text = await readable(folder, file);
        counted.push({ path: file.path, lines: text === null ? 0 : linesOf(text).length });
      }
      const base = asked.path.replace(/^(?:\.\/)+|^\.$|\/+$/g, "");
      const below = (file: string): string => (base === "" ? file : file.slice(base.length + 1));
      return {
        path: asked.path,
        files: files.length,
        lines: counted.reduce((sum, file) => sum + file.lines, 0),
        bytes: files.reduce((sum, file) => sum + file.bytes, 0),
        by_kind: grouped(counted, (file) => kindOf(file.path)),
        by_folder: grouped(
          counted.filter((file) => below(file.path).includes("/")),
          (file) => below(file.path).slice(0, below(file.path).indexOf("/")),
        ),
        longest: counted.toSorted((a, b) => b.lines - a.lines).slice(0, SHOWN_GROUPS),
        names: sha256(files.map((file) => file.path).join("\n")).slice(0, 12),
      };
    },
  }),
];

function folderOf(run: ToolRun): Folder {
  if (run.workspace !== null) return new Folder(run.workspace);
  throw new RejectedError("INVALID_ARGUMENT", "this agent was given no folder to look through.");
}

/** Null for what is not text, too large, or gone since it was listed. */
async function readable(folder: Folder, file: FoundFile): Promise<string | null> {
  try {
    return await folder.read(file.path);
  } catch (error) {
    if (error instanceof RejectedError || (error as NodeJS.ErrnoException).code !== undefined) return null;
    throw error;
  }
}

function linesOf(text: string): string[] {
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function kindOf(file: string): string {
  const name = file.slice(file.lastIndexOf("/") + 1);
  const dot = name.lastIndexOf(".");
  return dot > 0 ? name.slice(dot).toLowerCase() : "other";
}

interface Group {
  readonly name: string;
  readonly files: number;
  readonly lines: number;
}

function grouped(
  files: readonly { path: string; lines: number }[],
  nameOf: (file: { path: string; lines: number }) => string,
): Group[] {
  const groups = new Map<string, Group>();
  for (const file of files) {
    const name = nameOf(file);
    const known = groups.get(name) ?? { name, files: 0, lines: 0 };
    groups.set(name, { name, files: known.files + 1, lines: known.lines + file.lines });
  }
  return [...groups.values()]
    .toSorted((a, b) => b.lines - a.lines || (a.name < b.name ? -1 : 1))
    .slice(0, SHOWN_GROUPS);
}
