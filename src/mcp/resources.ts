/** The tree, the root's mailbox and the transfers as resources: to look at, in pages; reading one changes nothing. */
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import type { Json } from "../protocol/json.ts";
import { headBytes } from "../platform/text.ts";
import type { TreeHandle } from "../runtime/tree-handle.ts";

export interface ResourceSource {
  /** Null as long as the client has none. */
  readonly tree: () => TreeHandle | null;
}

interface Page {
  readonly rows: readonly unknown[];
  /** For `after`; null on the last page. */
  readonly next: string | null;
}

interface Resource {
  readonly title: string;
  readonly description: string;
  readonly read: (tree: TreeHandle, after: string | null) => Promise<Page>;
}

const ROWS = 200;
const SHOWN_BYTES = 4 * 1024;
const SCHEME = "coppice:";
const JSON_TYPE = "application/json";

const RESOURCES: Readonly<Record<string, Resource>> = {
  tree: {
    title: "Agents",
    description: "Every agent of your tree: status, unread mail, open works, tokens.",
    async read(tree, after) {
      const { agents, next } = await tree.list({ limit: ROWS, after, closed: true });
      return { rows: agents, next };
    },
  },
  mailbox: {
    title: "Unread mail",
    description:
      "Messages and results that wait for you, oldest first. wait_agent takes them; this only shows them.",
    async read(tree, after) {
      const afterSeq = after === null ? 0 : Number(after);
      if (!Number.isSafeInteger(afterSeq) || afterSeq < 0) throw new RangeError("the cursor is a number");
      const unread = await tree.control.read((view) => view.unread(tree.id, { afterSeq, limit: ROWS + 1 }));
      const rows = unread
        .slice(0, ROWS)
        .map(({ id, seq, kind, author, workId, resultOf, content, createdAt }) => ({
          id,
          seq,
          kind,
          author,
          workId,
          resultOf,
          text: headBytes(content.text, SHOWN_BYTES),
          bytes: content.bytes,
          createdAt,
        }));
      return { rows, next: unread.length > ROWS ? String(rows.at(-1)!.seq) : null };
    },
  },
  transfers: {
    title: "Transfers",
    description:
      "Why and from where context has moved in your tree: spawns, results, forks, switches, merges.",
    read: (tree, after) => tree.control.read((view) => view.transfers(tree.id, { limit: ROWS, after })),
  },
};

export function listResources() {
  return Object.entries(RESOURCES).map(([name, { title, description }]) => ({
    uri: `${SCHEME}//${name}`,
    name,
    title,
    description,
    mimeType: JSON_TYPE,
  }));
}

/** The same with the cursor that a page ends with. */
export function listTemplates() {
  return listResources().map(({ uri, ...resource }) => ({ ...resource, uriTemplate: `${uri}{?after}` }));
}

/** @throws ProtocolError for an address of nothing, or a cursor that no page has told. */
export async function readResource({ tree }: ResourceSource, uri: string) {
  const asked = URL.canParse(uri) ? new URL(uri) : null;
  const name = asked?.host ?? "";
  if (asked?.protocol !== SCHEME || !Object.hasOwn(RESOURCES, name) || asked.pathname !== "")
    throw notFound(uri);
  const owned = tree();
  const after = asked.searchParams.get("after");
  const page = owned === null ? { rows: [], next: null } : await RESOURCES[name]!.read(owned, after);
  const content = { tree: owned?.id ?? null, ...page } as unknown as Json;
  return { contents: [{ uri, mimeType: JSON_TYPE, text: JSON.stringify(content) }] };
}

const SHOWN_CHARACTERS = 200;

function notFound(uri: string): ProtocolError {
  const known = listResources().map((one) => one.uri);
  return new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    `There is no resource ${uri.slice(0, SHOWN_CHARACTERS)}; there are ${known.join(", ")}.`,
  );
}
