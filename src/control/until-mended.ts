/** What fails at a stored row that cannot be read is tried again when that row was mended, each row once (REC-1). */

/** Answers whether something stands in for what could not be read; `mended` are the ids of the rows that were looked at. */
export type Mend = (failure: unknown, mended: Set<string>) => Promise<boolean>;

export async function untilMended<T>(attempt: () => Promise<T>, mend: Mend): Promise<T> {
  const mended = new Set<string>();
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(await mend(error, mended))) throw error;
    }
  }
}
