/**
 * The tree of a client: a host-driven root (HDR) whose loop is the client's own. It is made by the first call, so that a client
 * that starts its servers and asks nothing of them leaves nothing in the store.
 *
 * - T1 The tools are known before the tree is; they are those of the tree that would be made.
 * - T2 An opening that fails is the answer of that call, and the next one tries again.
 */
import { threadToolsSchema } from "../protocol/thread-tools.ts";
import type { Logger } from "../platform/logger.ts";
import { type RuntimeOptions, treeDefaults, type TreeOptions } from "../runtime/options.ts";
import type { TreeHandle } from "../runtime/tree-handle.ts";
import type { HostTool, HostTools } from "../tools/host-tools.ts";
import { hostBuiltIns } from "../tools/built-ins.ts";
import { errorOutput } from "../tools/refusal.ts";

export interface HostTreeOptions {
  /** Of the runtime that `open` opens the tree in. */
  readonly runtime: Pick<RuntimeOptions, "limits" | "profile" | "threadTools">;
  /** Of the tree. */
  readonly asked: Pick<TreeOptions, "limits" | "profile">;
  readonly open: () => Promise<TreeHandle>;
  readonly logger: Logger;
}

export class HostTree {
  readonly tools: readonly HostTool[];
  readonly #options: HostTreeOptions;
  #opening: Promise<{ readonly tree: TreeHandle; readonly tools: HostTools }> | null = null;
  #tree: TreeHandle | null = null;

  constructor(options: HostTreeOptions) {
    this.#options = options;
    const { limits, profile: rules } = treeDefaults(options.runtime, options.asked);
    const { allow } = threadToolsSchema.parse(options.runtime.threadTools ?? { allow: "none" });
    this.tools = hostBuiltIns(rules, limits, allow).map(
      ({ name, title, description, parameters, hints }) => ({
        name,
        title,
        description,
        parameters,
        hints,
        call: async (input, called = {}) => {
          called.signal?.throwIfAborted();
          let tools: HostTools;
          try {
            ({ tools } = await this.#opened());
          } catch (error) {
            return { output: errorOutput(name, error, options.logger), isError: true };
          }
          return tools.find((tool) => tool.name === name)!.call(input, called);
        },
      }),
    );
  }

  /** Null as long as nothing was called. */
  get tree(): TreeHandle | null {
    return this.#tree;
  }

  #opened() {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async #open() {
    const tree = await this.#options.open();
    const tools = tree.root.tools({ shortTransport: true });
    this.#tree = tree;
    return { tree, tools };
  }
}
