/**
 * The layer table, the only place where it stands as data, and the judge that holds an import against it.
 * A folder not listed here may not exist; a folder may import itself and what its row names.
 */
import { posix } from "node:path";
import { type Import, type Source, importsOf } from "./scanner.ts";

/** What one folder of `src/` may import. */
interface Row {
  /** Folders of `src/`. */
  readonly folders: readonly string[];
  /** Folders of which only types may be imported. */
  readonly types?: readonly string[];
  /** External packages that have their home here. */
  readonly packages?: readonly string[];
  /** External packages of which only types may be imported. */
  readonly packageTypes?: readonly string[];
  /** False where the code must run in a browser. */
  readonly node?: false;
}

const ports = ["protocol", "platform", "store", "providers", "policy"];
const mechanisms = ["mailbox", "execution", "residency", "lineage"];
const below = [...ports, ...mechanisms, "session"];

/** One row a folder, from the bottom up. */
export const table: Readonly<Record<string, Row>> = {
  protocol: { folders: [], node: false },
  platform: { folders: ["protocol"], packages: ["nanoid", "pino", "@opentelemetry/api"] },
  store: { folders: ["protocol", "platform"], packages: ["node:sqlite"] },
  providers: {
    folders: ["protocol", "platform"],
    packages: ["@modelcontextprotocol/server"],
    packageTypes: ["@ai-sdk/provider"],
  },
  policy: { folders: ["protocol", "platform"], packages: ["yaml"] },
  mailbox: { folders: ["protocol", "platform"], types: ["store"] },
  execution: { folders: ["protocol", "platform"], types: ["store"], packages: ["p-queue"] },
  residency: { folders: ["protocol", "platform"], types: ["store"] },
  lineage: { folders: ["protocol", "platform"], types: ["store"] },
  session: {
    folders: ["protocol", "platform", "store", "providers", "mailbox", "lineage"],
    packages: ["xstate"],
  },
  control: { folders: below },
  threads: { folders: [...below, "control"] },
  tools: { folders: ["protocol", "platform", "control", "threads"] },
  runtime: { folders: [...below, "control", "threads", "tools"] },
  mcp: {
    folders: ["protocol", "platform", "runtime", "tools"],
    packages: ["@modelcontextprotocol/server"],
  },
  daemon: { folders: ["protocol", "platform", "runtime", "tools"] },
  // A host like any program: it hands createRuntime a store, providers, roles and tools of its own.
  cli: {
    folders: ["protocol", "platform", "store", "providers", "policy", "tools", "runtime", "mcp", "daemon"],
    types: ["threads"],
    packages: ["commander", "jsonc-parser", "smol-toml"],
  },
  web: { folders: [], types: ["protocol"], node: false },
};

/** Packages that every folder may import. */
const everywhere = ["zod"];

/** Node's own modules that only their home may import. */
const ambient = ["node:crypto", "node:timers", "node:timers/promises", "node:perf_hooks"];

/** The one file that loads a module which the user has named; it does so in one place. */
const LOADS_WHAT_IT_IS_GIVEN = "src/cli/config.ts";

/** What is wrong with the imports of one file; empty when nothing is. */
export function judge(source: Source): string[] {
  const folder = folderOf(source.path);
  if (folder !== undefined && !Object.hasOwn(table, folder)) {
    return [`${source.path}: src/${folder} is not in the layer table`];
  }
  let excused = source.path === LOADS_WHAT_IT_IS_GIVEN;
  return importsOf(source).flatMap((one) => {
    if (one.specifier === "" && excused) {
      excused = false;
      return [];
    }
    const fault = one.specifier.startsWith(".")
      ? relativeFault(source.path, folder, one)
      : externalFault(folder, one);
    return fault === undefined ? [] : [`${source.path}: "${one.specifier}" ${fault}`];
  });
}

function relativeFault(path: string, folder: string | undefined, one: Import): string | undefined {
  if (!/\.(tsx?|json)$/.test(one.specifier)) return "lacks its .ts";
  const target = posix.join(posix.dirname(path), one.specifier);
  if (!target.startsWith("src/")) {
    return folder === undefined && target === "package.json" ? undefined : "leaves src";
  }
  if (folder === undefined) return undefined;
  const to = folderOf(target);
  if (to === undefined) return "is an entry point of the package, which nothing inside may import";
  const row = rowOf(folder);
  if (to === folder || row.folders.includes(to)) return undefined;
  if (row.types?.includes(to)) {
    return one.typeOnly ? undefined : `reaches src/${to}, of which only types may be imported`;
  }
  return `reaches src/${to}, which src/${folder} may not import`;
}

function externalFault(folder: string | undefined, one: Import): string | undefined {
  if (one.specifier === "") return "is computed, which nobody can check";
  const name = packageOf(one.specifier);
  if (folder === undefined || everywhere.includes(name)) return undefined;
  const row = rowOf(folder);
  if (row.packages?.includes(name)) return undefined;
  if (row.packageTypes?.includes(name))
    return one.typeOnly ? undefined : "may be imported for its types only";
  if (!name.startsWith("node:")) return `has no home in src/${folder}`;
  if (row.node === false) return `is Node's, and src/${folder} runs in a browser`;
  const homeless = Object.values(table).some((other) => other.packages?.includes(name));
  if (homeless || (ambient.includes(name) && folder !== "platform")) return `has no home in src/${folder}`;
  return undefined;
}

/** The folder below `src/` that owns a file; undefined for the entry points, which may import anything. */
export function folderOf(path: string): string | undefined {
  const [, folder, ...rest] = path.split("/");
  return rest.length === 0 || folder === "testing" ? undefined : folder;
}

function rowOf(folder: string): Row {
  const row = table[folder];
  if (row === undefined) throw new Error(`src/${folder} is not in the layer table`);
  return row;
}

function packageOf(specifier: string): string {
  if (specifier.startsWith("node:")) return specifier;
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}
