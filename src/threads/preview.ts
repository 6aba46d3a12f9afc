/**
 * What would happen if the next run went to a provider: what it knows by itself, what it would be told, and why this way
 * (lineage C4). Nothing is asked, written or sent.
 */
import type { AgentRecord } from "../protocol/agent.ts";
import { CoppiceError } from "../protocol/errors.ts";
import type { TransferId } from "../protocol/ids.ts";
import { countOrdinals, describeOrdinals, type OrdinalRange } from "../protocol/ordinals.ts";
import type { ProviderSelection, ThreadFacts } from "../protocol/thread.ts";
import type { HandoffKind, StalenessSignal } from "../protocol/transfer.ts";
import { destinationOf } from "../control/start.ts";
import type { BuiltText } from "../control/start-build.ts";
import { type Planned, planStart } from "../control/start-run.ts";
import { covered } from "../lineage/coverage.ts";
import { type ChooseSummariser, deterministic } from "../lineage/handoff/summarise.ts";
import type { HandoffBase, StartBase } from "../lineage/start-plan.ts";
import { estimateTokens } from "../policy/estimate-tokens.ts";
import { itemsOf } from "./items.ts";
import type { ThreadPorts } from "./ports.ts";
import { toldTexts } from "./told-texts.ts";
import { type ProviderCoverage, coverageOf } from "./thread-view.ts";

/** A text that a provider would be told. */
export interface PreviewedText {
  /** The pending transfer that it would resolve; null for a switch that would be made. */
  readonly transferId: TransferId | null;
  readonly kind: HandoffKind | "pinned_context";
  readonly runs: readonly OrdinalRange[];
  /** An upper estimate. */
  readonly tokens: number;
  readonly bytes: number;
  /** Items of the source that there was no room for. */
  readonly omitted: number;
  readonly text: string;
}

/** What would happen if the next run went to a provider. */
export interface StartPreview {
  readonly provider: string;
  readonly model: string | null;
  readonly strategy: Exclude<StartBase["kind"], "handoff"> | HandoffBase["coverage"];
  readonly into: "existing" | "new" | null;
  /** Why this one, in a sentence. */
  readonly why: string;
  /** Set where it is `unsupported`. */
  readonly code: string | null;
  readonly staleness: readonly StalenessSignal[];
  /** Runs that the provider thread would know without being told. */
  readonly knows: readonly OrdinalRange[];
  readonly tells: readonly PreviewedText[];
  /** Every provider thread as it is now. */
  readonly coverage: readonly ProviderCoverage[];
}

/** @throws RejectedError `PROVIDER_UNAVAILABLE`, `POLICY_UNMET`. */
export async function previewStart(
  ports: ThreadPorts,
  { treeId, threadId, config }: AgentRecord,
  selection: ProviderSelection,
): Promise<StartPreview> {
  await ports.look(treeId, (look) => look.context.requireProvider(selection.provider, config.effects));
  const adapter = ports.providers[selection.provider]!;
  const capabilities = adapter.loop === "ours" ? adapter.threads : await adapter.capabilities();
  const to = destinationOf(
    adapter,
    { provider: selection.provider, model: selection.model ?? adapter.defaultModel },
    capabilities,
  );
  const { planned, refused, coverage, texts } = await toldTexts(askingNobody(ports.summariser), (memory) =>
    ports.look(treeId, (look) => {
      const agent = look.agent(threadId) as AgentRecord & { readonly thread: ThreadFacts };
      const found = { coverage: coverageOf(look.store, agent), planned: null, refused: null };
      try {
        const asked = { ...agent, thread: { ...agent.thread, selection } };
        const run = { ordinal: agent.runs + 1, causes: [] };
        return { ...found, planned: planStart(look, asked, run, itemsOf(look.store, agent), to, memory) };
      } catch (error) {
        if (CoppiceError.is(error) && error.family === "rejected") return { ...found, refused: error };
        throw error;
      }
    }),
  );
  const shown = { provider: to.provider, model: to.model, coverage };
  if (planned === null) {
    const { code, message } = refused!;
    return {
      ...shown,
      strategy: "unsupported",
      into: null,
      why: message,
      code,
      staleness: [],
      knows: [],
      tells: [],
    };
  }
  const { base } = planned.plan;
  return {
    ...shown,
    ...strategyOf(base),
    code: null,
    why: whyOf(planned),
    staleness: base.kind === "handoff" && base.into === "new" ? base.staleness : [],
    knows: planned.record === null ? [] : covered(planned.record, planned.facts.handoffs),
    tells: [...contextTold(planned), ...texts.flatMap(textTold)],
  };
}

/** Whoever will write a summary may be a model, which is asked and paid for when the run starts. */
function askingNobody(choose: ChooseSummariser): ChooseSummariser {
  return async () => ((await choose(null)) === null ? null : deterministic);
}

/** What a thread opens on whose runs are told nothing else (C4.14). */
function contextTold({ plan: { base }, snapshot }: Planned): readonly PreviewedText[] {
  if (base.kind !== "projected" || snapshot === null) return [];
  const about = { transferId: base.transferId, kind: "pinned_context", runs: [], omitted: 0 } as const;
  return [{ ...about, ...sized(snapshot) }];
}

function textTold({ transferId, built }: BuiltText): readonly PreviewedText[] {
  if (built === null) return [];
  const { kind, coveredRuns: runs, payload } = built.about;
  return [{ transferId, kind, runs, omitted: payload.omittedItemIds.length, ...sized(built.text) }];
}

function sized(text: string): Pick<PreviewedText, "text" | "tokens" | "bytes"> {
  return { tokens: estimateTokens([{ role: "system", text }], []), bytes: Buffer.byteLength(text), text };
}

function strategyOf(base: StartBase): Pick<StartPreview, "strategy" | "into"> {
  if (base.kind === "handoff") return { strategy: base.coverage, into: base.into };
  return {
    strategy: base.kind,
    into: base.kind === "none" && base.providerThreadId !== null ? "existing" : "new",
  };
}

const SIGNALS: Readonly<Record<StalenessSignal, string>> = {
  off_provider_runs: "too many runs went elsewhere since",
  handoff_chain: "it was told by too many handoffs already",
  incompatible_settings: "the change of model or settings wants another conversation",
  resume_failed: "it could not be resumed when it was last tried",
  divergent: "it knows of runs that were rolled back",
  clean_context: "a clean context was asked for",
  context_full: "it has grown too long for the model's window",
  delta_too_large: "what it does not know is too much for a delta",
};

function whyOf({ plan, facts }: Planned): string {
  const { base } = plan;
  switch (base.kind) {
    case "none":
      return base.providerThreadId === null
        ? "There is nothing yet that the provider would have to know."
        : "The provider's conversation knows every run of this thread.";
    case "native_fork":
      return "The provider can fork its own conversation at the point of the fork.";
    case "projected":
      return "The thread opens on its pinned context alone.";
    case "unsupported":
      return base.text;
    case "handoff": {
      const runs = describeOrdinals(base.runs);
      const named = `${countOrdinals(base.runs) === 1 ? "run" : "runs"} ${runs}`;
      if (base.into === "existing" && base.coverage === "delta")
        return `The provider's conversation is resumed and told of ${named}, which went elsewhere.`;
      if (base.into === "existing")
        return `The provider's conversation is resumed and told everything: a delta of ${named} would be one too many.`;
      const why = base.staleness.map((signal) => SIGNALS[signal]).join("; ");
      const told = facts.fork === null && base.runs.length > 0 ? `all runs (${runs})` : "what it inherits";
      return why === ""
        ? `The provider has no conversation of this thread yet: a new one is told ${told}.`
        : `A new conversation is told ${told}, because of the earlier one: ${why}.`;
    }
  }
}
