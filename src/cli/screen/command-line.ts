/**
 * A command that is printed to be typed next. It is about what the command before it was about: the options that led there
 * (`--store`, `--tree`, `--limit` and the like) are written again.
 */

/** Options by their names as commander tells them; what is undefined or false was not given. */
export type GivenOptions = Readonly<Record<string, string | number | boolean | undefined>>;

/** @param rest what follows the options, such as a `--` and a message. */
export function commandLine(command: string, options: GivenOptions, rest = ""): string {
  const words = Object.entries(options).flatMap(([name, value]) => {
    if (value === undefined || value === false) return [];
    const option = `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    return value === true ? [option] : [option, word(String(value))];
  });
  return ["npx coppice", command, ...words, rest].filter((part) => part !== "").join(" ");
}

/** As one word of a shell. */
function word(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
