/** What a session of an agent that speaks ACP is set to: its mode, its model, how hard it thinks. Only what changes is told. */
import { RejectedError } from "../../protocol/errors.ts";
import type { AcpAgent } from "./agent.ts";
import type { AcpOpened, AcpOption } from "./wire.ts";

interface Choice {
  readonly mode: string | null;
  readonly model: string | null;
  readonly effort: string | null;
}

/** What the categories of the protocol are called here. */
const CATEGORIES = { model: "model", effort: "thought_level" } as const;

export class AcpSettings {
  readonly #agent: AcpAgent;
  readonly #sessionId: string;
  readonly #modes: boolean;
  readonly #options: readonly AcpOption[];
  /** As they are; what it began with is what `null` stands for. */
  readonly #set = new Map<string, string>();

  constructor(agent: AcpAgent, sessionId: string, { modes, configOptions }: AcpOpened) {
    this.#agent = agent;
    this.#sessionId = sessionId;
    this.#modes = (modes ?? null) !== null;
    this.#options = configOptions ?? [];
  }

  /** @throws RejectedError `PROVIDER_REFUSED` for what the agent lets nobody choose, or refuses. */
  async choose({ mode, model, effort }: Choice): Promise<void> {
    if (mode !== null) await this.#mode(mode);
    await this.#option("model", model);
    await this.#option("effort", effort);
  }

  /** It has changed it by itself. */
  modeIs(mode: string): void {
    this.#set.set("mode", mode);
  }

  async #mode(mode: string): Promise<void> {
    if (this.#set.get("mode") === mode) return;
    const option = this.#options.find(({ category }) => category === "mode");
    if (this.#modes || option === undefined)
      await this.#agent.ask("session/set_mode", { sessionId: this.#sessionId, modeId: mode });
    else await this.#tell(option, mode);
    this.#set.set("mode", mode);
  }

  async #option(name: keyof typeof CATEGORIES, value: string | null): Promise<void> {
    const option = this.#options.find(({ category }) => category === CATEGORIES[name]);
    const first = typeof option?.currentValue === "string" ? option.currentValue : undefined;
    const wanted = value ?? first;
    if (wanted === undefined || wanted === (this.#set.get(name) ?? first)) return;
    if (option === undefined)
      throw new RejectedError(
        "PROVIDER_REFUSED",
        `${this.#agent.name} lets nobody choose the ${name} of a session; leave it out, or set it in the agent's own settings.`,
        { [name]: wanted },
      );
    await this.#tell(option, wanted);
    this.#set.set(name, wanted);
  }

  #tell({ id }: AcpOption, value: string): Promise<unknown> {
    return this.#agent.ask("session/set_config_option", {
      sessionId: this.#sessionId,
      configId: id,
      value,
    });
  }
}
