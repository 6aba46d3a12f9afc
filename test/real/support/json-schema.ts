/** Two questions about JSON Schemas that a program writes of its own protocol, answered in lines that name the place. */
import type { Json, JsonObject } from "../../../src/protocol/json.ts";

/** A schema with the definitions that it refers to. */
export interface Described {
  readonly schema: Json;
  readonly root: JsonObject;
}

/** What of a value is not as the schema says, members that it does not know included. */
export function misfits({ schema, root }: Described, value: Json, at = "$"): readonly string[] {
  const one = resolve(schema, root);
  if (one === true) return [];
  const branches = (one["anyOf"] ?? one["oneOf"]) as readonly Json[] | undefined;
  if (branches !== undefined) {
    const each = branches.map((branch) => misfits({ schema: branch, root }, value, at));
    return each.toSorted((a, b) => a.length - b.length)[0] ?? [`${at}: nothing is allowed here`];
  }
  if (one["enum"] !== undefined && !(one["enum"] as readonly Json[]).includes(value))
    return [`${at}: ${JSON.stringify(value)} is none of ${JSON.stringify(one["enum"])}`];
  const types = typesOf(one);
  if (types.length > 0 && !types.some((type) => isOf(type, value)))
    return [`${at}: ${JSON.stringify(value)?.slice(0, 80)} is no ${types.join(" or ")}`];
  if (Array.isArray(value))
    return value.flatMap((item, index) =>
      misfits({ schema: one["items"] ?? true, root }, item, `${at}[${index}]`),
    );
  if (value === null || typeof value !== "object") return [];
  const properties = propertiesOf(one, root);
  const rest = one["additionalProperties"];
  const required = requiredOf(one, root).filter((name) => !Object.hasOwn(value, name));
  return [
    ...required.map((name) => `${at}.${name} is missing`),
    ...Object.entries(value as JsonObject).flatMap(([name, member]) => {
      const known = properties[name] ?? (typeof rest === "object" ? rest : undefined);
      if (known !== undefined) return misfits({ schema: known, root }, member, `${at}.${name}`);
      // An object of which nothing is said takes everything.
      return rest === true || Object.keys(properties).length === 0 ? [] : [`${at}.${name} is not known`];
    }),
  ];
}

/** What is read and is not written any more, or in another form: `ours` is what the reader wants, `theirs` what is promised. */
export function unwritten(ours: Described, theirs: Described, at = "$"): readonly string[] {
  const wanted = resolve(ours.schema, ours.root);
  const given = resolve(theirs.schema, theirs.root);
  if (wanted === true || given === true) return [];
  const of = (described: Described, schema: Json): Described => ({ ...described, schema });
  const branches = (one: JsonObject): readonly Json[] | undefined =>
    (one["anyOf"] ?? one["oneOf"]) as readonly Json[] | undefined;
  const wants = branches(wanted);
  if (wants !== undefined) return fewest(wants.map((branch) => unwritten(of(ours, branch), theirs, at)));
  const gives = branches(given);
  if (gives !== undefined) {
    // What may be null is written as one of two; the reader has said elsewhere that it bears that.
    const some = gives.filter((branch) => !typesOf(resolve(branch, theirs.root)).includes("null"));
    return fewest(some.map((branch) => unwritten(ours, of(theirs, branch), at)));
  }
  const both = typesOf(wanted).filter((type) => typesOf(given).some((other) => isLike(type, other)));
  if (typesOf(wanted).length > 0 && typesOf(given).length > 0 && both.length === 0)
    return [`${at} is ${typesOf(given).join(" or ")} and not ${typesOf(wanted).join(" or ")}`];
  const lost = ((wanted["enum"] ?? []) as readonly Json[]).filter(
    (value) => given["enum"] !== undefined && !(given["enum"] as readonly Json[]).includes(value),
  );
  if (lost.length > 0) return [`${at} is never ${JSON.stringify(lost)}`];
  if (wanted["items"] !== undefined && given["items"] !== undefined)
    return unwritten(of(ours, wanted["items"]), of(theirs, given["items"]), `${at}[]`);
  const properties = propertiesOf(given, theirs.root);
  const sure = requiredOf(given, theirs.root);
  const needed = requiredOf(wanted, ours.root);
  return Object.entries(propertiesOf(wanted, ours.root)).flatMap(([name, member]) => {
    const written = properties[name];
    if (written === undefined) return [`${at}.${name} is not written`];
    if (needed.includes(name) && !sure.includes(name)) return [`${at}.${name} may be missing`];
    return unwritten(of(ours, member), of(theirs, written), `${at}.${name}`);
  });
}

function fewest(each: readonly (readonly string[])[]): readonly string[] {
  return each.toSorted((a, b) => a.length - b.length)[0] ?? [];
}

function resolve(schema: Json | undefined, root: JsonObject): JsonObject | true {
  if (schema === undefined || schema === true) return true;
  const one = schema as JsonObject;
  const reference = one["$ref"];
  if (typeof reference !== "string") return one;
  const found = reference
    .slice(2)
    .split("/")
    .reduce<Json | undefined>((at, key) => (at as JsonObject | undefined)?.[key], root);
  return resolve(found, root);
}

function partsOf(one: JsonObject, root: JsonObject): readonly JsonObject[] {
  const all = ((one["allOf"] ?? []) as readonly Json[]).map((part) => resolve(part, root));
  return [one, ...all.flatMap((part) => (part === true ? [] : partsOf(part, root)))];
}

function propertiesOf(one: JsonObject, root: JsonObject): JsonObject {
  return Object.assign({}, ...partsOf(one, root).map((part) => part["properties"] ?? {})) as JsonObject;
}

function requiredOf(one: JsonObject, root: JsonObject): readonly string[] {
  return partsOf(one, root).flatMap((part) => (part["required"] ?? []) as readonly string[]);
}

function typesOf(one: JsonObject | true): readonly string[] {
  if (one === true || one["type"] === undefined) return [];
  return [one["type"]].flat() as readonly string[];
}

function isLike(one: string, other: string): boolean {
  return one === other || (one === "number" && other === "integer");
}

function isOf(type: string, value: Json): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    default:
      return typeof value === type;
  }
}
