/**
 * Claude Code's own agents below the turn under way: they are shown, never gone on with here (lineage C8.1). They run while their call
 * does, as background tasks are off: the end of one of these would begin a turn that nobody asked for.
 */
import type { NativeEvent } from "../../protocol/native-events.ts";
import type { Told } from "../turn-told.ts";
import { refOf } from "./translate.ts";
import type { ClaudeSystem } from "./wire.ts";

type Outcome = "completed" | "failed" | "interrupted";

const OUTCOMES: Readonly<Record<string, Outcome>> = {
  completed: "completed",
  failed: "failed",
  stopped: "interrupted",
  killed: "interrupted",
};

export class ClaudeChildren {
  readonly #tell: (event: Told<NativeEvent>) => void;
  readonly #atWork = new Set<string>();

  constructor(tell: (event: Told<NativeEvent>) => void) {
    this.#tell = tell;
  }

  heard({ subtype, task_id: id, task_type: kind, prompt, description, status, summary }: ClaudeSystem): void {
    if (id === undefined) return;
    if (subtype === "task_started" && kind === "local_agent") {
      this.#atWork.add(id);
      this.#tell({ type: "child.started", child: refOf(id), prompt: prompt ?? description ?? "" });
    }
    if (subtype === "task_notification") this.#ends(id, OUTCOMES[String(status)] ?? "failed", summary ?? "");
  }

  end(): void {
    for (const id of this.#atWork) this.#ends(id, "interrupted", "");
  }

  #ends(id: string, outcome: Outcome, text: string): void {
    if (!this.#atWork.delete(id)) return;
    this.#tell({ type: "child.terminal", child: refOf(id), outcome, text });
  }
}
