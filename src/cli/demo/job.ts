/**
 * The job of the demo: what the root is asked, and the roles of the agents that it may start. The same words go to the
 * scripted model and to a real one.
 */
import type { RoleFile } from "../../policy/role-file.ts";

/** Names the scripted model, so that an agent's record says which script plays it. */
export const DEMO_MODEL = "demo";
export const DEMO_TITLE = "look through a folder";

/** Fewer than the agents, so that they are unloaded and loaded again. */
export const DEMO_RESIDENTS = 3;

export const COUNTER = "counter";
export const READER = "reader";
export const SEARCHER = "searcher";

export const DEMO_ASK = `Look through the folder that you were given and say what is in it.
Do it with other agents:
1. List and count the folder yourself.
2. Start three agents that work side by side, each in the role of its name and with \`fork_turns\` \`none\`: \`${COUNTER}\` counts, \`${READER}\` reads one document, \`${SEARCHER}\` looks into every file for anything that needs attention.
3. Tell ${COUNTER}, by a message, into which folder it is to look more closely.
4. When ${READER} is done, follow up with another document for it.
5. Looking into every file takes too long, as you see when ${READER} is done again: interrupt ${SEARCHER}, and follow up with one word for it to search, taken from what ${READER} found.
6. Wait for all results, then answer: size, kinds, the longest files, what the documents are about, where the word stands, and the \`names\` digest of your own count.`;

export const ROOT_INSTRUCTIONS =
  "You look through a folder with the help of other agents. Everything you say about it comes from a tool or from a result.";

export const WIDE_TASK = "Look into every file, one after the other, for anything that needs attention.";
export const counterTask =
  "Count everything in the folder. A message will name the folder to look into more closely.";
export const counterNote = (folder: string): string => `Look more closely into \`${folder}\`.`;
export const counterAgain = (folder: string): string =>
  `Count everything in the folder, and look more closely into \`${folder}\`.`;
export const readerTask = (file: string): string => `Read \`${file}\` and say what it is about.`;
export const searcherTask = (word: string): string =>
  `Search all files for \`${word}\` only, and say where it stands.`;

const role = (
  name: string,
  description: string,
  tools: readonly string[],
  instructions: string,
): RoleFile => ({
  file: `${name}.md`,
  bytes: new TextEncoder().encode(
    `---\nname: ${name}\ndescription: ${description}\ntools: [${tools.join(", ")}]\n---\n${instructions}\n`,
  ),
});

export const demoRoles: readonly RoleFile[] = [
  role(
    COUNTER,
    "Counts files and lines.",
    ["count", "list_files"],
    "You count. First count the whole folder. If you have not been told yet into which folder to look more closely, wait for " +
      "a message that says so. Then count that one too. Answer with the figures, the kinds, and the longest files of that folder.",
  ),
  role(
    READER,
    "Reads one document and says what it is about.",
    ["read_file", "list_files"],
    "You read the document that you are given. Answer with its path, its title, its headings and its length.",
  ),
  role(
    SEARCHER,
    "Searches the files for a text.",
    ["search", "read_file", "list_files"],
    "You search the files. Answer with the text you searched, how often it stands in how many files, and where most.",
  ),
];
