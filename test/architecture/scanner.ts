/**
 * Reads TypeScript sources into what the architecture tests judge: the modules a file imports, and its uses
 * of what only `src/platform` may touch (time, timers, randomness).
 *
 * It works on the syntax tree, so comments and strings never count, and nothing in a comment switches it off.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { parseSync } from "vite";

/** One module named by a file. */
export interface Import {
  /** The specifier as written. */
  readonly specifier: string;
  /** True when nothing of it remains at run time. */
  readonly typeOnly: boolean;
}

/** A source file, its path from the root of the package with `/` as separator. */
export interface Source {
  readonly path: string;
  readonly text: string;
}

interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** Every `.ts` and `.tsx` file under a folder, in a stable order. */
export function readSources(root: string, folder: string): Source[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()
    .map((path) => ({ path: relative(root, path).split(sep).join("/"), text: readFileSync(path, "utf8") }));
}

/** The imports of a source: static, `import type`, `export … from`, dynamic, `import("…")` types, `require`. */
export function importsOf(source: Source): Import[] {
  const found: Import[] = [];
  for (const { node } of walk(parse(source))) {
    switch (node.type) {
      case "ImportDeclaration":
        found.push({ specifier: literal(node["source"]), typeOnly: isTypeOnly(node, "importKind") });
        break;
      case "ExportAllDeclaration":
      case "ExportNamedDeclaration":
        if (node["source"]) {
          found.push({ specifier: literal(node["source"]), typeOnly: isTypeOnly(node, "exportKind") });
        }
        break;
      case "ImportExpression":
        found.push({ specifier: literal(node["source"]), typeOnly: false });
        break;
      case "TSImportType":
        found.push({ specifier: literal(node["source"] ?? node["argument"]), typeOnly: true });
        break;
      case "TSExternalModuleReference":
        found.push({ specifier: literal(node["expression"]), typeOnly: false });
        break;
      case "CallExpression":
        if (/^(.*\.)?(require|getBuiltinModule)$/.test(dotted(node["callee"]) ?? "")) {
          found.push({ specifier: literal(list(node["arguments"])[0]), typeOnly: false });
        }
        break;
      default:
    }
  }
  return found;
}

const globals = new Set([
  "setTimeout",
  "setInterval",
  "setImmediate",
  "clearTimeout",
  "clearInterval",
  "clearImmediate",
  "queueMicrotask",
  "crypto",
  "performance",
]);
const members =
  /^(?:globalThis\.)?(?:Date\.now|Math\.random|process\.(?:hrtime|nextTick|uptime)|AbortSignal\.timeout)$/;
const hosts = new Set(["globalThis", "global", "window", "self"]);

/** What a source uses of time, timers and randomness; each as it would be written, such as `Date.now`. */
export function ambientUsesOf(source: Source): string[] {
  const found: string[] = [];
  for (const { node, parent, key } of walk(parse(source))) {
    if (node.type === "MemberExpression") {
      const name = dotted(node);
      const [host, property] = name?.split(".") ?? [];
      if (name !== undefined && members.test(name)) found.push(name);
      else if (hosts.has(host ?? "") && globals.has(property ?? "")) found.push(property ?? "");
    } else if (node.type === "Identifier" && globals.has(text(node["name"])) && !isName(parent, key)) {
      found.push(text(node["name"]));
    } else if (node.type === "NewExpression" || node.type === "CallExpression") {
      const bare = node.type === "CallExpression" || list(node["arguments"]).length === 0;
      if (bare && dotted(node["callee"])?.replace("globalThis.", "") === "Date") found.push("new Date()");
    }
  }
  return found;
}

/** A string of the code; what stands in comments and types is none. */
export interface Text {
  readonly value: string;
  /**
   * `compared`: by an operator or as a case. `code`: the value of a property of that name. `row`: the first of a list in a
   * list. `argument`: of a call.
   */
  readonly role: "compared" | "code" | "row" | "argument" | "other";
}

export function stringsOf(source: Source): Text[] {
  const found: Text[] = [];
  const rows = new Set<unknown>();
  for (const { node, parent, key } of walk(parse(source))) {
    if (node.type === "ArrayExpression" && parent?.type === "ArrayExpression")
      rows.add(list(node["elements"])[0]);
    if (node.type !== "Literal" || typeof node["value"] !== "string" || parent?.type === "TSLiteralType")
      continue;
    const compared =
      parent?.type === "SwitchCase" ||
      (parent?.type === "BinaryExpression" && /^[!=]==?$/.test(text(parent["operator"])));
    const ofCode = parent?.type === "Property" && key === "value" && dotted(parent["key"]) === "code";
    const argument = parent?.type === "CallExpression" && key === "arguments";
    const role = compared
      ? "compared"
      : ofCode
        ? "code"
        : rows.has(node)
          ? "row"
          : argument
            ? "argument"
            : "other";
    found.push({ value: text(node["value"]), role });
  }
  return found;
}

/** Calls whose first argument is a string and which are given a function: a test and its title, by any helper. */
export function titlesOf(source: Source): string[] {
  const found: string[] = [];
  for (const { node } of walk(parse(source))) {
    if (node.type !== "CallExpression") continue;
    const [first, ...rest] = list(node["arguments"]);
    const given = rest.some((argument) => /^(ArrowFunction|Function)Expression$/.test(argument.type));
    const callee = JSON.stringify(node["callee"], (_, value: unknown) =>
      typeof value === "bigint" ? 0 : value,
    );
    if (given && first && !/"name":"(skip|todo|skipIf|runIf)"/.test(callee)) found.push(literal(first));
  }
  return found;
}

function parse(source: Source): Node {
  const result = parseSync(source.path, source.text);
  const [error] = result.errors;
  if (error) throw new Error(`${source.path}: ${error.message}`);
  return result.program as unknown as Node;
}

interface Visit {
  readonly node: Node;
  readonly parent: Node | undefined;
  readonly key: string;
}

function* walk(node: Node, parent?: Node, key = ""): Generator<Visit> {
  yield { node, parent, key };
  for (const [name, value] of Object.entries(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) yield* walk(child, node, name);
    }
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as Node).type === "string";
}

function isTypeOnly(node: Node, kind: "importKind" | "exportKind"): boolean {
  if (node[kind] === "type") return true;
  const specifiers = list(node["specifiers"]);
  return specifiers.length > 0 && specifiers.every((specifier) => specifier[kind] === "type");
}

/** True where an identifier is the name of a property or a member, not a reference to a global. */
function isName(parent: Node | undefined, key: string): boolean {
  if (parent === undefined || parent["computed"] === true) return false;
  switch (parent.type) {
    case "MemberExpression":
      return key === "property";
    case "Property":
      return key === "key" && parent["shorthand"] !== true;
    case "MethodDefinition":
    case "PropertyDefinition":
    case "TSPropertySignature":
    case "TSMethodSignature":
      return key === "key";
    case "TSQualifiedName":
      return key === "right";
    default:
      return false;
  }
}

function dotted(value: unknown): string | undefined {
  if (!isNode(value)) return undefined;
  if (value.type === "Identifier") return text(value["name"]);
  if (value.type !== "MemberExpression") return undefined;
  const object = dotted(value["object"]);
  const property = value["computed"] === true ? literal(value["property"]) : dotted(value["property"]);
  return object === undefined || !property ? undefined : `${object}.${property}`;
}

/** A string literal's value, a template's text before its first hole; empty for anything computed. */
function literal(value: unknown): string {
  if (!isNode(value)) return "";
  if (value.type === "TSLiteralType") return literal(value["literal"]);
  if (value.type === "TemplateLiteral") {
    const quasi = list(value["quasis"])[0]?.["value"] as { readonly cooked?: string } | undefined;
    return quasi?.cooked ?? "";
  }
  return text(value["value"]);
}

function list(value: unknown): Node[] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
