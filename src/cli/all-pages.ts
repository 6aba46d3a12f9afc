/** A list of the store, or of a tree, from its first page to its last. */

/** The pages of a list; one is read when the one before has been looked at. */
export async function* allPages<P extends { readonly next: string | null }>(
  read: (after: string | null) => Promise<P>,
): AsyncGenerator<P, void, undefined> {
  for (let after: string | null = null; ;) {
    const page = await read(after);
    yield page;
    after = page.next;
    if (after === null) return;
  }
}
