/** The shape of the manifest: data that the coverage test and the documents read. */

/** One behaviour that the package answers for. */
export interface Contract {
  /** What a test's title starts with. */
  readonly id: string;
  /** The behaviour in one line. */
  readonly behaviour: string;
  /** Where the behaviour comes from. */
  readonly source: string;
  /** Why there is no test yet. Removed together with the first test that carries the id. */
  readonly deferred?: string;
  /** What a tested behaviour still leaves for later. */
  readonly partly?: string;
  /** Why there never will be a test. */
  readonly leftOut?: string;
  /** Other ids of the manifest whose tests prove this one. */
  readonly provedBy?: readonly string[];
}

/** Rows of the reference engine's own tests that share a line: numbers, and pairs for ranges. */
export interface UpstreamRows extends Omit<Contract, "id" | "source" | "deferred" | "partly"> {
  readonly rows: readonly (number | readonly [from: number, to: number])[];
}

export const guarantee = "guarantee of the runtime";
export const reference = "seen on the reference engine";
export const acceptance = "acceptance case";
export const upstreamTest = "test of the reference engine";
export const lineageRow = "promise of threads and their lineage";
