/** What each provider knows of a thread's runs, as a table: from its own turns, from what it was told, and what it lacks. */
import { countOrdinals, describeOrdinals, type OrdinalRange, unite } from "../../protocol/ordinals.ts";
import type { ProviderCoverage } from "../../threads/thread-view.ts";
import { MODEL } from "../run-tree.ts";
import { clean, clip, fit, type Terminal } from "../terminal.ts";

const NAME_COLUMNS = 18;
const MOST_COLUMNS = 110;

/** The provider by its name; a model of a vendor by the vendor's. */
export function providerName(provider: string, model: string | null): string {
  return clean(provider === MODEL && model !== null ? model : provider);
}

export function coverageLines(terminal: Terminal, coverage: readonly ProviderCoverage[]): string[] {
  const columns = Math.min(terminal.columns, MOST_COLUMNS);
  const wide = Math.max(10, Math.floor((columns - NAME_COLUMNS - 4) / 3));
  const row = (cells: readonly string[]): string =>
    clip(
      [fit(cells[0]!, NAME_COLUMNS + 1), ...cells.slice(1).map((cell) => fit(cell, wide))].join(" "),
      columns,
    );
  const head = row(["  provider", "knows natively", "was told", "does not know"]).trimEnd();
  return [
    terminal.paint("dim", head),
    ...coverage.map((one) => {
      const name = `${one.active ? "●" : " "} ${providerName(one.provider, one.model)}`;
      const told = one.told.reduce<readonly OrdinalRange[]>((all, { runs }) => unite(all, runs), []);
      const line = row([name, runsOrNone(one.native), runsOrNone(told), runsOrNone(one.gap)]).trimEnd();
      return one.continuity === "divergent" ? terminal.paint("dim", `${line}  (rolled back)`) : line;
    }),
  ];
}

/** `run 3`, or `runs 1 to 5, 9`. */
export function runsNamed(runs: readonly OrdinalRange[]): string {
  return `${countOrdinals(runs) === 1 ? "run" : "runs"} ${describeOrdinals(runs)}`;
}

function runsOrNone(runs: readonly OrdinalRange[]): string {
  return runs.length === 0 ? "–" : describeOrdinals(runs);
}
