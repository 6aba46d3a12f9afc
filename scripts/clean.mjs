/** Empties `dist/`, so that a file removed from `src/` does not stay in the package. */
import { rm } from "node:fs/promises";

await rm(new URL("../dist", import.meta.url), { recursive: true, force: true });
