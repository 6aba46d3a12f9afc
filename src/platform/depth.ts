/** How deep lists and objects may lie in one another where others write them: no code that walks a value must bear more. */

export const DEEPEST = 200;

/** Level by level, so that it cannot itself run out of stack. */
export function isTooDeep(value: unknown): boolean {
  let level: readonly unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > DEEPEST) return true;
    level = level.flatMap((one) => (typeof one === "object" && one !== null ? Object.values(one) : []));
  }
  return false;
}
