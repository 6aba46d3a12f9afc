/** What each provider knows of a thread's runs, as a table: from its own turns, from what it was told, and what it lacks. */
import { countOrdinals, describeOrdinals, type OrdinalRange, unite } from "../../protocol/ordinals.ts";
import type { ProviderCoverage } from "../../threads/thread-view.ts";
import { MODEL } from "../run-tree.ts";
import { clean, clip, fit, type Terminal } from "../terminal.ts";

const NAME_COLUMNS = 18;
const MOST_COLUMNS = 110;
/** Below it a table would cut off what one looks for, and each fact has a line. */
export const TABLE_COLUMNS = 56;

/** The provider by its name; a model of a vendor by the vendor's. */
export function providerName(provider: string, model: string | null): string {
  return clean(provider === MODEL && model !== null ? model : provider);
}

export function coverageLines(terminal: Terminal, coverage: readonly ProviderCoverage[]): string[] {
  const columns = Math.min(terminal.columns, MOST_COLUMNS);
  if (columns < TABLE_COLUMNS) return coverage.flatMap((one) => listed(terminal, one, columns));
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
      const line = row([nameOf(one), ...knowledge(one)]).trimEnd();
      return one.continuity === "divergent" ? terminal.paint("dim", `${line}${ROLLED_BACK}`) : line;
    }),
  ];
}

const ROLLED_BACK = "  (rolled back)";

function nameOf({ active, provider, model }: ProviderCoverage): string {
  return `${active ? "●" : " "} ${providerName(provider, model)}`;
}

/** Its own runs, those that it was told of, those that it lacks. */
function knowledge({ native, told, gap }: ProviderCoverage): readonly string[] {
  const runs = told.reduce<readonly OrdinalRange[]>((all, one) => unite(all, one.runs), []);
  return [native, runs, gap].map(runsOrNone);
}

function listed(terminal: Terminal, one: ProviderCoverage, columns: number): string[] {
  const divergent = one.continuity === "divergent";
  const labels = ["knows natively", "was told", "does not know"];
  const lines = [
    `${nameOf(one)}${divergent ? ROLLED_BACK : ""}`,
    ...knowledge(one).map((runs, at) => `    ${fit(labels[at]!, 15)} ${runs}`),
  ].map((line) => clip(line, columns));
  return divergent ? lines.map((line) => terminal.paint("dim", line)) : lines;
}

/** `run 3`, or `runs 1 to 5, 9`. */
export function runsNamed(runs: readonly OrdinalRange[]): string {
  return `${countOrdinals(runs) === 1 ? "run" : "runs"} ${describeOrdinals(runs)}`;
}

function runsOrNone(runs: readonly OrdinalRange[]): string {
  return runs.length === 0 ? "–" : describeOrdinals(runs);
}
