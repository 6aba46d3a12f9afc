/**
 * Writes docs/api.md from the declarations and their TSDoc: `npx node scripts/api-reference.ts`. A test holds the file to it.
 * What stands there is what the compiler says of each export of each entry point; the words are those of the sources.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expansions } from "./type-expansions.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const ENTRIES = [
  ["coppice", "index"],
  ["coppice/testing", "testing"],
] as const;
const GROUPS = ["function", "class", "const", "interface", "type"] as const;
type Kind = (typeof GROUPS)[number];
const TITLES: Readonly<Record<Kind, string>> = {
  function: "Functions",
  class: "Handles and errors",
  const: "Values",
  interface: "Shapes",
  type: "Types",
};
/** A value whose type is longer is told by its words. */
const LONGEST_VALUE = 12;

export interface ApiExport {
  readonly entry: string;
  readonly name: string;
  readonly kind: Kind;
  /** Only its type is exported: it is made by the runtime. */
  readonly typeOnly: boolean;
  readonly words: string;
  readonly throws: string;
  readonly signature: string;
  /** Told by its members, a line each. */
  readonly block: boolean;
}

/** An alias that computes its type says nothing to a reader: it is told by what comes of it. */
const COMPUTED = /^type \w+ =[^{]*(?:\btypeof\b|\bz\.|\bOmit<|\w\["?\w+"?\])/;
const BASES = /^(interface \w+(?:<[^>]*>)?) extends ([^{]*)(?= \{)/;
/** Bases that everybody knows. */
const KNOWN = /^(?:AsyncDisposable|Disposable|ReadonlyArray<\w+>|AsyncIterable<.+>)$/;

const HEADER = `# API reference

Everything that the package exports, as the compiler sees it. Written by \`scripts/api-reference.ts\` from the sources; a test holds
it to them. What a call refuses is a \`CoppiceError\` of [errors.md](errors.md); whatever takes arguments also refuses wrong and
unknown ones with \`INVALID_ARGUMENT\`, which names the argument and what would be taken.
`;

/** The document. */
export function apiReference(exported: readonly ApiExport[]): string {
  const parts = [HEADER];
  for (const [entry] of ENTRIES) {
    parts.push(`## \`${entry}\`\n`);
    for (const kind of GROUPS) {
      const group = exported.filter((one) => one.entry === entry && one.kind === kind);
      if (group.length === 0) continue;
      parts.push(`### ${TITLES[kind]}\n`);
      parts.push(...group.map(section), "");
    }
  }
  return parts.join("\n");
}

/** One line and one of code, or a block for what has members. */
function section({ name, kind, words, throws, signature, block }: ApiExport): string {
  const said = throws === "" ? words : `${words} Throws ${throws}`;
  if (block)
    return `${kind === "type" ? "\n" : ""}#### \`${name}\`\n\n${said}\n\n\`\`\`ts\n${signature}\n\`\`\`\n`;
  const line = signature.replaceAll(/\s+/g, " ").replace(/^function /, "");
  return `- **\`${name}\`** ${said}<br>\n  \`${line}\``;
}

/** What the entry points export, in their order. */
export function apiExports(): ApiExport[] {
  const folder = mkdtempSync(join(tmpdir(), "coppice-api-"));
  try {
    const compiler = join(root, "node_modules/typescript/bin/tsc");
    const given = [
      "-p",
      join(root, "tsconfig.build.json"),
      "--noCheck",
      "--emitDeclarationOnly",
      "--outDir",
      folder,
    ];
    execFileSync(process.execPath, [compiler, ...given], { stdio: "inherit" });
    return readable(ENTRIES.flatMap(([entry, file]) => exportsOf(folder, entry, file)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Without names that stand for what is exported nowhere. */
function readable(exported: readonly ApiExport[]): ApiExport[] {
  const names = new Set(exported.map(({ name }) => name));
  const isOpaque = (base: string): boolean => !names.has(base) && !KNOWN.test(base);
  const basesOf = (signature: string): string[] => BASES.exec(signature)?.[2]?.split(/, (?=[A-Z])/) ?? [];
  const opaque = exported.filter(
    ({ kind, signature }) =>
      (kind === "type" && COMPUTED.test(signature)) || basesOf(signature).some(isOpaque),
  );
  const expanded = expansions(
    root,
    opaque.map(({ name, entry }) => ({ name, entry: ENTRIES.find(([one]) => one === entry)![1] })),
  );
  const unions = opaque.flatMap(({ name }, at) => {
    const { text, members: none } = expanded[at]!;
    return none.length === 0 && text.includes(" | ") ? [[text, name] as const] : [];
  });
  const named = (text: string): string =>
    unions.reduce((told, [union, name]) => told.replaceAll(union, name), text);
  return exported.map((one) => {
    const at = opaque.indexOf(one);
    if (at < 0) return one;
    const { text } = expanded[at]!;
    const members = expanded[at]!.members.map(({ name, lines }) => ({ name, lines: named(lines) }));
    if (one.kind === "type") {
      const signature =
        members.length === 0 ? text : ["{", ...members.map(({ lines }) => lines), "}"].join("\n");
      return { ...one, signature: `type ${one.name} = ${signature}`, block: members.length > 0 };
    }
    const kept = basesOf(one.signature).filter((base) => !isOpaque(base));
    const inherited = members.filter(({ name }) => !new RegExp(`\\b${name}\\??[:(<]`).test(one.signature));
    const signature = one.signature
      .replace(BASES, (_, head: string) => (kept.length === 0 ? head : `${head} extends ${kept.join(", ")}`))
      .replace(/\n?\}$/, `\n${inherited.map(({ lines }) => `${lines}\n`).join("")}}`);
    return { ...one, signature };
  });
}

function exportsOf(folder: string, entry: string, file: string): ApiExport[] {
  const text = readFileSync(join(folder, `${file}.d.ts`), "utf8");
  const found: ApiExport[] = [];
  for (const [, allTypes, names, space, from] of text.matchAll(
    /^export (type )?(?:\{([^}]*)\}|\* as (\w+)) from "(.+?)\.ts";/gm,
  )) {
    const declarations = readFileSync(join(folder, dirname(file), `${from}.d.ts`), "utf8");
    if (space !== undefined) {
      for (const [, name] of declarations.matchAll(/^export declare function (\w+)/gm)) {
        const member = declarationOf(declarations, name!, entry, false);
        found.push({ ...member, name: `${space}.${name}` });
      }
      continue;
    }
    for (const one of names!.split(",").map((part) => part.trim())) {
      if (one === "") continue;
      const typeOnly = allTypes !== undefined || one.startsWith("type ");
      found.push(declarationOf(declarations, one.replace(/^type /, ""), entry, typeOnly));
    }
  }
  return found;
}

function declarationOf(text: string, name: string, entry: string, typeOnly: boolean): ApiExport {
  const head = new RegExp(
    `(?:^/\\*\\*((?:(?!\\*/)[\\s\\S])*)\\*/\\n)?^export (?:declare )?(?:abstract )?(function|class|const|interface|type) ${name}\\b`,
    "m",
  ).exec(text);
  if (head === null) throw new Error(`${name} is declared nowhere`);
  const kind = head[2] as Kind;
  const start = text.indexOf("export", head.index + (head[1] === undefined ? 0 : head[1].length + 5));
  const comment = (head[1] ?? "").replaceAll(/^ *\* ?/gm, "").trim();
  const [words = "", throws = ""] = comment.split(/@throws/);
  const line = (part: string): string =>
    part
      .replaceAll(/@param (\w+)/g, "`$1`:")
      .replaceAll(/\s+/g, " ")
      .trim();
  const signature = tidy(declared(text.slice(start), kind), kind);
  const block = kind === "class" || kind === "interface";
  return { entry, name, kind, typeOnly, words: line(words), throws: line(throws), signature, block };
}

/** From `export` to the end of the declaration. */
function declared(text: string, kind: Kind): string {
  const lines: string[] = [];
  let depth = 0;
  for (const line of text.split("\n")) {
    lines.push(line);
    const code = line.replaceAll(/\/\*\*.*?\*\/|^\s*(\/\*\*|\*).*$|"[^"]*"|=>/g, "");
    depth += (code.match(/[{([<]/g)?.length ?? 0) - (code.match(/[})\]>]/g)?.length ?? 0);
    if (depth === 0 && (code.endsWith(";") || (kind !== "type" && code.endsWith("}")))) break;
  }
  return lines.join("\n");
}

/** What a reader needs of it: two spaces, nothing private, no constructor that only the runtime calls. */
function tidy(text: string, kind: Kind): string {
  const lines = text
    .replace(/^export (declare )?/, "")
    .split("\n")
    .filter((line) => !/^ {4}#private;$/.test(line) && !/^ {4}constructor\(/.test(line))
    .map((line) => line.replace(/^( {4})+/, (indent) => " ".repeat(indent.length / 2)));
  if (kind === "const" && lines.length > LONGEST_VALUE) return lines[0]!.replace(/:.*$/, ": { … };");
  return lines.join("\n").replace(/;$/, "");
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(join(root, "docs/api.md"), apiReference(apiExports()));
