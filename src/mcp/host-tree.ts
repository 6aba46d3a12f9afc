/**
 * The tree of a client, whose tools outlast it: a tree that is made by the first call, so that a client that starts its servers
 * and asks nothing of them leaves nothing in the store, and one that was lost meanwhile, as on a machine that has slept.
 *
 * - T1 The tools are known before the tree is open; they are those that it has then.
 * - T2 A tree that this process does not own any more is opened again by the next call.
 * - T3 An opening that fails is the answer of that call, and the next one tries again.
 */
import { threadToolsSchema } from "../protocol/thread-tools.ts";
import type { TreeId } from "../protocol/ids.ts";
import type { Logger } from "../platform/logger.ts";
import { type RuntimeOptions, treeDefaults, type TreeOptions } from "../runtime/options.ts";
import type { TreeHandle } from "../runtime/tree-handle.ts";
import type { HostTool } from "../tools/host-tools.ts";
import { hostBuiltIns } from "../tools/built-ins.ts";
import { errorOutput } from "../tools/refusal.ts";

/** How a tool looks from outside. */
export type ToolFace = Omit<HostTool, "call">;

/** Those of the root of a host-driven tree that is not there yet. */
export function hostToolFaces(
  runtime: Pick<RuntimeOptions, "limits" | "profile" | "threadTools">,
  asked: Pick<TreeOptions, "limits" | "profile">,
): readonly ToolFace[] {
  const { limits, profile } = treeDefaults(runtime, asked);
  const { allow } = threadToolsSchema.parse(runtime.threadTools ?? { allow: "none" });
  return hostBuiltIns(profile, limits, allow);
}

export interface OpenedTree {
  readonly tree: TreeHandle;
  readonly tools: readonly HostTool[];
}

export interface HostTreeOptions {
  readonly faces: readonly ToolFace[];
  /** Of the tree that it had before; null for the first one. */
  readonly open: (id: TreeId | null) => Promise<OpenedTree>;
  readonly logger: Logger;
  /** One that is open already. */
  readonly opened?: OpenedTree;
}

export class HostTree {
  readonly tools: readonly HostTool[];
  readonly #options: HostTreeOptions;
  #opening: Promise<OpenedTree> | null = null;
  #opened: OpenedTree | null;

  constructor(options: HostTreeOptions) {
    this.#options = options;
    this.#opened = options.opened ?? null;
    this.tools = options.faces.map(({ name, title, description, parameters, hints }) => ({
      name,
      title,
      description,
      parameters,
      hints,
      call: async (input, called = {}) => {
        called.signal?.throwIfAborted();
        let tools: readonly HostTool[];
        try {
          ({ tools } = await this.#open());
        } catch (error) {
          return { output: errorOutput(name, error, options.logger), isError: true };
        }
        return tools.find((tool) => tool.name === name)!.call(input, called);
      },
    }));
  }

  /** Null as long as nothing was called, and while it is lost. */
  get tree(): TreeHandle | null {
    const tree = this.#opened?.tree;
    return tree?.owned === true ? tree : null;
  }

  async #open(): Promise<OpenedTree> {
    const known = this.#opened;
    if (known?.tree.owned === true) return known;
    this.#opening ??= this.#options.open(known?.tree.id ?? null).finally(() => (this.#opening = null));
    return (this.#opened = await this.#opening);
  }
}
