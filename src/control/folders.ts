/**
 * Folders that the agents of a runtime work in at the moment, whichever tree they stand in (lineage C1.18). A checkpoint is
 * written back with its folder alone; runs begin, and captures are taken, beside each other.
 *
 * - F1 A folder is where its path leads, with all that is in it: links to it, folders in it and those that it is in count as it.
 * - F2 Who waits, waits for those who came before, so nobody waits in a circle and nobody for ever.
 */
import { abortable } from "../platform/abortable.ts";
import { overlap } from "../platform/workspace.ts";

interface Hold {
  readonly folder: string;
  readonly alone: boolean;
  readonly over: Promise<void>;
}

export class Folders {
  readonly #holds = new Set<Hold>();

  /** Beside others; nobody has it alone until this is given back. @throws the signal's reason. */
  share(folder: string, signal?: AbortSignal): Promise<Disposable> {
    return this.#hold(folder, false, signal);
  }

  /** When nobody else has it. @throws the signal's reason. */
  alone(folder: string, signal?: AbortSignal): Promise<Disposable> {
    return this.#hold(folder, true, signal);
  }

  async #hold(folder: string, alone: boolean, signal: AbortSignal | undefined): Promise<Disposable> {
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const mine: Hold = { folder, alone, over };
    const before = [...this.#holds].filter((one) => (alone || one.alone) && overlap(one.folder, folder));
    this.#holds.add(mine);
    const giveBack = (): void => {
      this.#holds.delete(mine);
      resolve();
    };
    try {
      if (before.length > 0) await abortable(signal, () => Promise.all(before.map((one) => one.over)));
    } catch (error) {
      giveBack();
      throw error;
    }
    return { [Symbol.dispose]: giveBack };
  }
}
