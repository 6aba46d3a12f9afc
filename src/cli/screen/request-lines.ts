/** Questions and approvals that wait for an answer, and how each is answered from a shell. */
import type { AskedRequest } from "../../runtime/tree-reader.ts";
import { clean, type Terminal, wrap } from "../terminal.ts";

/** Nothing when nothing is asked. */
export function requestLines(terminal: Terminal, requests: readonly AskedRequest[]): string[] {
  return requests.flatMap((request) => {
    const asks = request.kind === "approval" ? "asks for an approval" : "asks";
    const asked = wrap(`${request.path} ${asks}: ${clean(request.text)}`, terminal.columns, "  ");
    return [
      ...asked.map((line) => terminal.paint("yellow", line)),
      terminal.paint("dim", `  ${answerCommand(request, requests)}`),
    ];
  });
}

/** What is typed to answer; the id is only needed where the agent asks several things. */
export function answerCommand(request: AskedRequest, all: readonly AskedRequest[]): string {
  const several = all.some((other) => other.id !== request.id && other.threadId === request.threadId);
  const answer = request.kind === "approval" ? "--approve (or --deny)" : '--text "…"';
  return `npx coppice agent answer ${request.path}${several ? ` ${request.id}` : ""} ${answer}`;
}
