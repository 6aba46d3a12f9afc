/**
 * The suite that every store passes: the guarantees S1 to S7 of the port, one case each. It knows no test runner; it is
 * given a function that registers a test, and fails by throwing.
 */
import { brokenCases } from "./store-cases-broken.ts";
import { mailCases, type StoreCase } from "./store-cases-mail.ts";
import { ownershipCases } from "./store-cases-ownership.ts";
import { randomCases } from "./store-cases-random.ts";
import { recordCases } from "./store-cases-records.ts";
import { lineageCases } from "./store-cases-lineage.ts";
import { threadCases } from "./store-cases-threads.ts";
import { waitCases } from "./store-cases-waits.ts";
import { workCases } from "./store-cases-works.ts";
import { createSetClock, openWorld, type SetClock, type StoreSubject } from "./store-harness.ts";

export const storeCases = {
  ...mailCases,
  ...ownershipCases,
  ...recordCases,
  ...workCases,
  ...waitCases,
  ...threadCases,
  ...lineageCases,
  ...brokenCases,
  ...randomCases,
};
export type StoreCaseTitle = keyof typeof storeCases;

/** What the suite of a store is given: how to make one, and where its checks go. */
export interface StoreConformance {
  /** Stands before each title. */
  readonly name: string;
  /** An empty store that reads the time from this clock. */
  readonly open: (clock: SetClock) => Promise<StoreSubject>;
  readonly test: (title: string, body: () => Promise<void>) => void;
}

/** Registers a test for each guarantee. */
export function storeConformance({ name, open, test }: StoreConformance): void {
  for (const title of Object.keys(storeCases) as StoreCaseTitle[]) {
    test(`[${name}] ${title}`, () => runStoreCase(title, open));
  }
}

/** Runs one case on a fresh store. */
export async function runStoreCase(title: StoreCaseTitle, open: StoreConformance["open"]): Promise<void> {
  const run: StoreCase = storeCases[title];
  await withWorld(open, run);
}

/** Runs a case of one's own on a fresh store with a tree in it. */
export async function withWorld(open: StoreConformance["open"], run: StoreCase): Promise<void> {
  const clock = createSetClock();
  const subject = await open(clock);
  try {
    await run(await openWorld(subject, clock));
  } finally {
    await subject.cleanup();
  }
}
