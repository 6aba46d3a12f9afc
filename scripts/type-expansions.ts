/** What the compiler makes of types that are computed: an object by its members, all else as one text. For docs/api.md. */
import { join } from "node:path";
import {
  API,
  type Checker,
  NodeBuilderFlags,
  SymbolFlags,
  type Type,
  TypeFlags,
} from "typescript/unstable/sync";

export interface Expansion {
  readonly text: string;
  /** Of an object, each with its words. */
  readonly members: readonly { readonly name: string; readonly lines: string }[];
}

const { NoTruncation, InTypeAlias, UseAliasDefinedOutsideCurrentScope } = NodeBuilderFlags;

/** Of exports of entry points, in their order. */
export function expansions(
  root: string,
  wanted: readonly { readonly entry: string; readonly name: string }[],
): Expansion[] {
  const api = new API({ cwd: root });
  try {
    const snapshot = api.updateSnapshot({ openProjects: [join(root, "tsconfig.build.json")] });
    const { program, checker } = snapshot.getProjects()[0]!;
    return wanted.map(({ entry, name }) => {
      const file = checker.getSymbolAtLocation(program.getSourceFile(join(root, `src/${entry}.ts`))!)!;
      const exported = checker.getExportsOfModule(file).find((one) => one.name === name)!;
      const alias = (exported.flags & SymbolFlags.Alias) !== 0;
      const symbol = alias ? checker.getAliasedSymbol(exported) : exported;
      return expansion(checker, checker.getDeclaredTypeOfSymbol(symbol));
    });
  } finally {
    api.close();
  }
}

function expansion(checker: Checker, type: Type): Expansion {
  const text = words(checker, type, InTypeAlias);
  if ((type.flags & (TypeFlags.Object | TypeFlags.Intersection)) === 0) return { text, members: [] };
  const members = checker.getPropertiesOfType(type).flatMap((property) => {
    const { name } = property;
    if (name.startsWith("__")) return [];
    const said = checker.getDocumentationCommentOfSymbol(property).replaceAll(/\s+/g, " ");
    const optional = (property.flags & SymbolFlags.Optional) !== 0;
    const of = words(checker, checker.getTypeOfSymbol(property)!, 0);
    const line = `  readonly ${name}${optional ? `?: ${of.replace(/ \| undefined$/, "")}` : `: ${of}`};`;
    return [{ name, lines: said === "" ? line : `  /** ${said} */\n${line}` }];
  });
  return { text, members };
}

function words(checker: Checker, type: Type, flags: number): string {
  return checker.typeToString(type, undefined, NoTruncation | UseAliasDefinedOutsideCurrentScope | flags);
}
