/** A process that takes checkpoints of a folder, one after another, and says so at the start of each. */
import { systemClock } from "../../src/platform/clock.ts";
import { gitCapture } from "../../src/platform/workspace/git-capture.ts";

const [folder = ""] = process.argv.slice(2);
const workspace = gitCapture();
for (let at = 0; ; at += 1) {
  process.stdout.write(`${at}\n`);
  await workspace.capture(
    folder,
    { name: `${process.pid}/${at}`, message: "again" },
    { clock: systemClock, limitMs: 60_000 },
  );
}
