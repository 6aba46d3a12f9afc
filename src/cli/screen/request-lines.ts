/** Questions and approvals that wait for an answer, and how each is answered from a shell. */
import type { AskedRequest } from "../../runtime/tree-reader.ts";
import { clean, type Terminal, wrap } from "../terminal.ts";
import { commandLine } from "./command-line.ts";

/** Nothing when nothing is asked. */
export function requestLines(
  terminal: Terminal,
  requests: readonly AskedRequest[],
  options: { readonly store?: string },
): string[] {
  return requests.flatMap((request) => {
    const asks = request.kind === "approval" ? "asks for an approval" : "asks";
    const asked = wrap(`${request.path} ${asks}: ${clean(request.text)}`, terminal.columns, "  ");
    return [
      ...asked.map((line) => terminal.paint("yellow", line)),
      terminal.paint("dim", `  ${answerCommand(request, options)}`),
    ];
  });
}

/** What is typed to answer. A question's names the tree, since a path alone means the newest one; either names the request. */
export function answerCommand(
  { path, id, treeId, kind }: Pick<AskedRequest, "id" | "treeId" | "kind"> & { readonly path: string },
  { store }: { readonly store?: string },
): string {
  if (kind === "approval") return `${commandLine(`approvals approve ${id}`, { store })}  (or: deny)`;
  return commandLine(`agent answer ${path} ${id}`, { tree: treeId, store }, '--text "…"');
}
