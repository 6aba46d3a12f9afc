/** The store's part of the contract, and the conformance suite, on every store that is shipped. */
import { describe, test } from "vitest";
import { runStoreCase, storeConformance } from "../../src/testing/store-conformance.ts";
import { storeNames, stores } from "../support/stores.ts";

const shared = ["memory", "sqlite"] as const;

describe.for(shared)("the store", (name) => {
  storeConformance({ name, open: stores[name], test });
});

test.for(storeNames)("MBX-2 [%s] mail is read in the order of commits, without a gap", (name) =>
  runStoreCase("numbers a recipient's mail without a gap, in the order of commits", stores[name]),
);
