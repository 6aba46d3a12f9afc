/** The kills of `test/faults/crash.test.ts`, many more of them; `COPPICE_KILLS` says how many. */
import { test } from "vitest";
import { surviveKills } from "../support/crash/kills.ts";

const kills = Number(process.env["COPPICE_KILLS"]);
const ROUND = 25;
const rounds = Array.from({ length: Math.ceil(kills / ROUND) }, (_, index) => index + 1);

test.for(rounds)(
  "REC-1 MBX-1 kills under load, round %i: every promise holds, nothing acknowledged is lost",
  (round) =>
    surviveKills({
      kills: Math.min(ROUND, kills - (round - 1) * ROUND),
      seed: 100 + round,
      onLostRun: round % 2 === 0 ? "notify" : "retry",
    }),
);
