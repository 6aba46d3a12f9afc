/** What the records of threads owe the contract of lineage, on every store that is shipped. */
import { test } from "vitest";
import { runStoreCase } from "../../src/testing/store-conformance.ts";
import { storeNames, stores } from "../support/stores.ts";

test.for(storeNames)(
  "S0-19, S0-24 [%s] transfers are kept whole; a type outside the five is refused",
  (name) =>
    runStoreCase("keeps every field of a transfer, and refuses a type that there is not", stores[name]),
);

test.for(storeNames)("S1-55 [%s] threads are found by id and listed by the page", (name) =>
  runStoreCase("pages every list of threads without losing or doubling a row", stores[name]),
);

test.for(storeNames)("S1-57 [%s] a record from before threads has none", (name) =>
  runStoreCase("lists a thread from before threads, which descends from nobody", stores[name]),
);

test.for(storeNames)("S1-60 [%s] a workspace lists its own threads, open ones only where asked", (name) =>
  runStoreCase("lists threads by workspace and state, newest first", stores[name]),
);

test.for(storeNames)("S1-69 [%s] a revision of a snapshot is written once", (name) =>
  runStoreCase("writes a snapshot and a compaction once, and never again", stores[name]),
);
