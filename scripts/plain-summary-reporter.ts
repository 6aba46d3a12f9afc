/**
 * A vitest reporter whose one line, the last of a run, is plain: `12 passed, 0 failed`, followed by
 * `, 3 skipped` when something was skipped. No colour and no table, so that any script can read it.
 *
 * A file that could not be collected and an error that no test caught count as one failure each.
 */
import type { Reporter, SerializedError, TestModule, TestRunEndReason } from "vitest/node";

/** Prints the plain line after whatever the reporters before it print. */
// oxlint-disable-next-line import/no-default-export -- vitest loads a reporter by its default export
export default class PlainSummaryReporter implements Reporter {
  onTestRunEnd(
    modules: readonly TestModule[],
    unhandled: readonly SerializedError[],
    reason: TestRunEndReason,
  ): void {
    const count = { passed: 0, failed: unhandled.length, skipped: 0 };
    for (const module of modules) {
      count.failed += module.errors().length;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === "pending") count.failed += 1;
        else count[state] += 1;
      }
      for (const suite of module.children.allSuites()) count.failed += suite.errors().length;
    }
    if (reason !== "passed" && count.failed === 0) count.failed = 1;
    const skipped = count.skipped > 0 ? `, ${count.skipped} skipped` : "";
    process.stdout.write(`${count.passed} passed, ${count.failed} failed${skipped}\n`);
  }
}
