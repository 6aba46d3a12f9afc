/** Tests of real programs, as far as these are installed. */
import { test } from "vitest";
import { findReal, type Installed, type ProgramName } from "./programs.ts";

/** A test of a program; where that is missing it is skipped, and its title says why. */
export function testReal(
  name: ProgramName,
  title: string,
  body: (program: Installed) => Promise<void>,
): void {
  const found = findReal(name);
  const why = "missing" in found ? ` (${found.missing})` : "";
  test.skipIf(why !== "")(`${name} ${title}${why}`, () => body(found as Installed));
}
