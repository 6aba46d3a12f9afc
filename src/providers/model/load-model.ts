/**
 * The model behind a name such as `openai/gpt-5`, for the command line. The AI SDK's packages are not ours to bring: they
 * are taken from the user's folder, or from beside Coppice where both are installed globally. Key and address come from
 * the environment handed in, under the names that each vendor uses.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import { z } from "zod";
import { RejectedError } from "../../protocol/errors.ts";
import { check } from "../../platform/check.ts";
import { packageIn } from "../../platform/load-package.ts";
import type { LanguageModel } from "./language-model.ts";

interface Vendor {
  readonly package: string;
  readonly major: number;
  readonly factory: string;
  readonly keyVariable: string;
  readonly keyRequired: boolean;
  readonly addressVariable: string;
  readonly addressRequired: boolean;
}

const VENDORS: Readonly<Record<string, Vendor>> = {
  openai: {
    package: "@ai-sdk/openai",
    major: 4,
    factory: "createOpenAI",
    keyVariable: "OPENAI_API_KEY",
    keyRequired: true,
    addressVariable: "OPENAI_BASE_URL",
    addressRequired: false,
  },
  anthropic: {
    package: "@ai-sdk/anthropic",
    major: 4,
    factory: "createAnthropic",
    keyVariable: "ANTHROPIC_API_KEY",
    keyRequired: true,
    addressVariable: "ANTHROPIC_BASE_URL",
    addressRequired: false,
  },
  "openai-compatible": {
    package: "@ai-sdk/openai-compatible",
    major: 3,
    factory: "createOpenAICompatible",
    keyVariable: "OPENAI_COMPATIBLE_API_KEY",
    keyRequired: false,
    addressVariable: "OPENAI_COMPATIBLE_BASE_URL",
    addressRequired: true,
  },
};

type Factory = (settings: Readonly<Record<string, unknown>>) => (name: string) => LanguageModel;

/**
 * The model of `<vendor>/<name>`, ready for `createModelProvider`.
 * @param folders where packages are looked for, in this order.
 * @throws RejectedError `PROVIDER_NOT_CONFIGURED` that says what to install or which variable to set.
 */
export function loadModel(
  spec: string,
  environment: Readonly<Record<string, string | undefined>>,
  folders: readonly string[] = [process.cwd(), import.meta.dirname],
): LanguageModel {
  check("loadModel", loadArguments, { spec, environment, folders });
  const slash = spec.indexOf("/");
  const vendorName = spec.slice(0, slash);
  const name = spec.slice(slash + 1);
  const vendor = Object.hasOwn(VENDORS, vendorName) ? VENDORS[vendorName] : undefined;
  if (slash < 1 || name === "" || vendor === undefined) {
    const known = Object.keys(VENDORS).map((one) => `${one}/<model>`);
    throw notConfigured(`"${spec}" names no model; write one of ${known.join(", ")}.`, { spec });
  }
  const create = factoryOf(vendor, spec, folders);
  const apiKey = setting(environment, vendor.keyVariable, vendor.keyRequired, spec, "a key");
  const baseURL = setting(environment, vendor.addressVariable, vendor.addressRequired, spec, "an address");
  return create({
    ...(apiKey !== undefined && { apiKey }),
    ...(baseURL !== undefined && { baseURL }),
    ...(vendorName === "openai-compatible" && { name: vendorName, includeUsage: true }),
  })(name);
}

const loadArguments = z.strictObject({
  spec: z.string(),
  environment: z.custom<object>(
    (value) => typeof value === "object" && value !== null,
    "is no environment; give `process.env` or a record",
  ),
  folders: z.array(z.string()),
});

/** What is there for a vendor, without a look at the value of its key. */
export interface VendorState {
  readonly vendor: string;
  readonly package: string;
  readonly installed: boolean;
  readonly keyVariable: string;
  readonly keySet: boolean;
}

/** Every vendor that `loadModel` knows, and whether its package and its key are there. */
export function vendorStates(
  environment: Readonly<Record<string, string | undefined>>,
  folders: readonly string[] = [process.cwd(), import.meta.dirname],
): VendorState[] {
  return Object.entries(VENDORS).map(([vendor, known]) => ({
    vendor,
    package: `${known.package}@${known.major}`,
    installed: folders.some((folder) => isInstalled(known.package, folder)),
    keyVariable: known.keyVariable,
    keySet: (environment[known.keyVariable] ?? "") !== "",
  }));
}

function isInstalled(name: string, folder: string): boolean {
  try {
    createRequire(join(folder, "package.json")).resolve(name);
    return true;
  } catch {
    // Not found from there, or not for this Node: either way it cannot be used.
    return false;
  }
}

function factoryOf(vendor: Vendor, spec: string, folders: readonly string[]): Factory {
  for (const folder of folders) {
    const create = packageIn(folder, vendor.package)?.[vendor.factory];
    if (typeof create === "function") return create as Factory;
  }
  const wanted = `${vendor.package}@${vendor.major}`;
  throw notConfigured(`${spec} needs the package ${wanted}; run: npm install ${wanted}`, {
    spec,
    package: wanted,
  });
}

function setting(
  environment: Readonly<Record<string, string | undefined>>,
  variable: string,
  required: boolean,
  spec: string,
  what: string,
): string | undefined {
  const value = environment[variable];
  if (value !== undefined && value !== "") return value;
  if (!required) return undefined;
  throw notConfigured(`${spec} needs ${what}; set the environment variable ${variable}.`, { spec, variable });
}

function notConfigured(message: string, details: Readonly<Record<string, string>>): RejectedError {
  return new RejectedError("PROVIDER_NOT_CONFIGURED", message, details);
}
