/** A work as a program holds it: its id, its record, and its outcome when it has one. */
import type { WorkId } from "../protocol/ids.ts";
import { RejectedError } from "../protocol/errors.ts";
import type { WorkOutcome, WorkRecord } from "../protocol/work.ts";
import { abortable, type CallOptions } from "../platform/abortable.ts";
import { check } from "../platform/check.ts";
import type { AgentControl } from "../control/agent-control.ts";
import { WORK } from "./arguments.ts";

/** One request and its outcome, from `agent.send`, `agent.spawn` or `tree.work`. */
export class Work {
  readonly id: WorkId;
  readonly #control: AgentControl;

  constructor(control: AgentControl, id: WorkId) {
    this.id = id;
    this.#control = control;
  }

  /** The work as it is stored. @throws RejectedError `INVALID_ARGUMENT` for an id that is not in the store. */
  async record(options: CallOptions = {}): Promise<WorkRecord> {
    check("Work.record", WORK.call, options);
    const work = await abortable(options.signal, () => this.#control.read((view) => view.work(this.id)));
    if (work === undefined)
      throw new RejectedError("INVALID_ARGUMENT", `no work ${this.id} is in the store.`, { id: this.id });
    return work;
  }

  /**
   * How it ended. An ended work answers at once, also when its tree is closed. An abort ends this wait and nothing else
   * (WAI-6).
   * @throws the signal's reason; `RUNTIME_CLOSED` or `FENCED` when the tree is given up before the work has ended.
   */
  async outcome(options: CallOptions = {}): Promise<WorkOutcome> {
    check("Work.outcome", WORK.call, options);
    const { signal } = options;
    const ended = async (): Promise<WorkOutcome | undefined> => (await this.record()).outcome ?? undefined;
    try {
      return await this.#control.tree.watchers.until(ended, signal, [this.id]);
    } catch (error) {
      // The tree may be given up before the work is asked for, or just as it ends.
      const outcome = signal?.aborted === true ? undefined : await ended().catch(() => undefined);
      if (outcome !== undefined) return outcome;
      throw error;
    }
  }
}
