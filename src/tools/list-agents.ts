/** `list_agents`: the agents of the tree (agents.md 41-43, LST-1). Pages and texts are bounded (MBX-9). */
import { z } from "zod";
import { resolveReference } from "../protocol/agent-path.ts";
import type { Json } from "../protocol/json.ts";
import type { Profile } from "../protocol/profile.ts";
import { type Redact, redactJson } from "../platform/redact.ts";
import { headBytes } from "../platform/text.ts";
import type { AgentControl } from "../control/agent-control.ts";
import { type AgentSummary, listAgents as listPage } from "../control/listing.ts";
import { codexStatus } from "../control/status.ts";
import { shownStatus } from "./asking.ts";
import { type AgentCaller, type BuiltIn, builtIn, result } from "./built-in.ts";
import { agentsUnder } from "../control/family.ts";

const OUTCOME_BYTES = 1024;
const SHOWN_WORKS = 16;
const PAGE = 50;
const LARGEST_PAGE = 100;

const referenceInput = z.strictObject({
  path_prefix: z
    .string()
    .optional()
    .describe("Only this agent and those below it: a path, or a name below you."),
});
const fullInput = referenceInput.extend({
  closed: z.boolean().optional().describe("True: closed agents as well."),
  after: z.string().optional().describe("`next` of the page before."),
  limit: z.number().int().min(1).max(LARGEST_PAGE).optional().describe(`Agents a page; default ${PAGE}.`),
});

const reference = `Lists the agents of this tree by path, with the status of each.
Use it to find out whom you can address, or what became of an agent. Do not call it again and again to see whether somebody is done: results come by themselves, and waiting is a tool of its own.`;

const full = `${reference}
Agents that are not in memory are listed like all others and can be given work.`;

export function listAgents(profile: Profile): BuiltIn {
  return builtIn({
    name: "list_agents",
    title: "List agents",
    description: profile.richOutputs ? full : reference,
    input: fullInput,
    taken: profile.richOutputs ? fullInput : referenceInput,
    hints: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
    async run(input, { control, caller }) {
      if (!profile.richOutputs) return result(await referenceList(control, caller, input.path_prefix));
      const page = await control.read((view) => {
        const { path, config } = view.agent(caller.threadId)!;
        const asked = {
          under: resolveReference(path, input.path_prefix ?? "/root", "path_prefix"),
          closed: input.closed ?? false,
          after: input.after ?? null,
          limit: input.limit ?? PAGE,
        };
        return { ...listPage(view, control.tree.treeId, asked, control), provider: config.provider };
      });
      return result({
        agents: page.agents.map((agent) =>
          shownAgent(agent, wordsFor(control, page.provider, agent.provider)),
        ),
        ...(page.next === null ? {} : { next: page.next }),
      });
    },
  });
}

/** Words of an agent as another is told them: without secrets where that one is another provider's (SEC-3). */
function wordsFor(control: AgentControl, reader: string, author: string): Redact {
  return reader === author ? (text) => text : control.tree.redact;
}

function shownAgent(agent: AgentSummary, words: Redact): Json {
  const { lastOutcome: last, openWorks } = agent;
  const more = openWorks.length - SHOWN_WORKS;
  return {
    agent: agent.path,
    thread_id: agent.threadId,
    status: shownStatus(agent.status),
    resident: agent.resident,
    role: agent.role,
    model: agent.model,
    last_outcome:
      last === null
        ? null
        : { status: last.status, reason: last.reason, text: headBytes(words(last.text), OUTCOME_BYTES) },
    open_works: openWorks.slice(0, SHOWN_WORKS),
    ...(more > 0 ? { more_open_works: more } : {}),
    unread: agent.unread,
    oldest_unread_ms: agent.oldestUnreadMs,
  };
}

function referenceList(
  control: AgentControl,
  caller: AgentCaller,
  prefix: string | undefined,
): Promise<Json> {
  return control.read((view) => {
    const { path, config } = view.agent(caller.threadId)!;
    const under = resolveReference(path, prefix ?? "/root", "path_prefix");
    const agents: Json[] = [];
    for (const agent of agentsUnder(view, control.tree.treeId, under)) {
      const status = codexStatus(view, agent, control);
      if (status === "not_found") continue;
      const words = wordsFor(control, config.provider, agent.config.provider);
      agents.push({ agent_name: agent.path, agent_status: redactJson(status, words) });
    }
    return { agents };
  });
}
