/**
 * Prints the table of limits and their defaults that stands in README.md between its two markers (BUD-6):
 * `npx node scripts/limits-table.ts`. The test of BUD-6 holds the README to it.
 */
import { fileURLToPath } from "node:url";
import { DEFAULT_LIMITS, limitsSchema } from "../src/protocol/limits.ts";

export const LIMITS_BEGIN = "<!-- limits: begin -->";
export const LIMITS_END = "<!-- limits: end -->";

/** A Markdown table with one row a limit, in the order of `protocol/limits`. */
export function limitsTable(): string {
  const rows = Object.entries(limitsSchema.shape).map(([name, schema]) => {
    const value = DEFAULT_LIMITS[name as keyof typeof DEFAULT_LIMITS];
    return `| \`${name}\` | ${shown(name, value)} | ${schema.description} |`;
  });
  return ["| limit | default | of what |", "|---|---|---|", ...rows].join("\n");
}

function shown(name: string, value: number | null): string {
  if (value === null) return "–";
  if (name.endsWith("Ms"))
    return withUnit(value, [
      ["h", 3_600_000],
      ["s", 1000],
      ["ms", 1],
    ]);
  if (name.endsWith("Bytes"))
    return withUnit(value, [
      ["MiB", 1_048_576],
      ["KiB", 1024],
      ["bytes", 1],
    ]);
  return value.toLocaleString("en-US");
}

/** In the largest unit of which it is a whole number. */
function withUnit(value: number, units: readonly (readonly [name: string, size: number])[]): string {
  const [name, size] = units.find(([, one]) => value >= one && value % one === 0) ?? ["", 1];
  return `${value / size} ${name}`.trim();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.stdout.write(`${limitsTable()}\n`);
