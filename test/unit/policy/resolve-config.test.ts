/** SPN-7, POL-1, POL-2: how the effective configuration of an agent is resolved. */
import { describe, expect, test } from "vitest";
import { policyHash } from "../../../src/policy/policy-hash.ts";
import type { ProviderFacts } from "../../../src/policy/choose-model.ts";
import { resolveConfig, type ResolveInput, withinCeiling } from "../../../src/policy/resolve-config.ts";
import type { Role } from "../../../src/policy/role-file.ts";
import { BUILT_IN_ROLES, loadRoles } from "../../../src/policy/roles.ts";
import { EFFECTS } from "../../../src/protocol/agent.ts";
import type { RejectedError } from "../../../src/protocol/errors.ts";

const facts = {
  contextWindow: 100_000,
  maxOutputTokens: 4000,
  efforts: ["low", "high"],
  defaultEffort: "low",
  collaborates: true,
};
const providers: readonly ProviderFacts[] = [
  {
    effectiveEffects: null,
    name: "near",
    defaultModel: "small",
    models: {
      small: facts,
      big: { ...facts, efforts: ["high", "ultra"], defaultEffort: "high", maxOutputTokens: 9000 },
      plain: { ...facts, efforts: ["low", "high"], collaborates: false },
    },
  },
  {
    name: "far",
    defaultModel: "other",
    models: { other: { ...facts, efforts: null, defaultEffort: null } },
    effectiveEffects: null,
  },
  { name: "open", defaultModel: null, models: null, effectiveEffects: null },
];
const tools = [
  { name: "look", effects: ["read"] as const },
  { name: "change", effects: ["read", "write"] as const },
  { name: "unknown_effects" },
];
const parent = {
  provider: "near",
  model: "small",
  effort: "high",
  tools: ["look", "change", "unknown_effects"],
  effects: EFFECTS,
  workspace: "/home/project",
  maxOutputTokens: 1234,
  modeHint: null,
  onLostRun: "retry" as const,
  pinPendingMail: false,
};
const base: ResolveInput = {
  asked: {},
  defaults: {},
  parent,
  providers,
  roles: loadRoles([], tools),
  tools,
  policy: { effects: [], workspace: null },
  prices: {},
  budgetsAbove: [],
  rolesCarryAuthority: true,
};

function withRole(fields: Partial<Role>): ResolveInput {
  const role: Role = { ...BUILT_IN_ROLES[0]!, name: "special", ...fields };
  const roles = { ...base.roles, roles: new Map([[role.name, role]]) };
  return { ...base, roles, asked: { role: "special" } };
}

function refusal(input: ResolveInput): RejectedError {
  try {
    resolveConfig(input);
  } catch (error) {
    return error as RejectedError;
  }
  throw new Error("was not refused");
}

describe("model and effort", () => {
  test("SPN-7 without a choice a child is set up like its parent's step", () => {
    expect(resolveConfig(base)).toMatchObject({
      provider: "near",
      model: "small",
      effort: "high",
      role: null,
      tools: ["look", "change", "unknown_effects"],
      effects: EFFECTS,
      workspace: "/home/project",
      maxOutputTokens: 1234,
      contextWindow: 100_000,
      onLostRun: "retry",
      leaf: false,
      adjustments: [],
    });
  });

  test.for([
    ["argument over default over parent", { model: "big" }, { model: "plain" }, ["big", "high"]],
    ["default over parent", {}, { model: "plain" }, ["plain", "low"]],
    [
      "the default's effort stays with an explicit model",
      { model: "big" },
      { effort: "ultra" },
      ["big", "ultra"],
    ],
    ["an effort alone keeps the parent's model", { effort: "low" }, {}, ["small", "low"]],
    ["a model without effort brings its own", { model: "big" }, {}, ["big", "high"]],
    ["another provider brings its default", { provider: "far" }, {}, ["other", null]],
    ["a provider in front of the model", { model: "far/other" }, {}, ["other", null]],
  ] as const)("SPN-7 precedence: %s", ([, asked, defaults, [model, effort]]) => {
    expect(resolveConfig({ ...base, asked, defaults })).toMatchObject({ model, effort });
  });

  test("SPN-7 another model takes its own output limit, not the parent's", () => {
    expect(resolveConfig({ ...base, asked: { model: "big" } }).maxOutputTokens).toBe(9000);
  });

  test("SPN-7 a role's model and effort beat explicit arguments", () => {
    const input = withRole({ model: "big", effort: "ultra" });
    const config = resolveConfig({ ...input, asked: { ...input.asked, model: "small", effort: "low" } });
    expect(config).toMatchObject({ model: "big", effort: "ultra", role: "special" });
  });

  test("SPN-7 a role that gives only a model keeps the effort, and is then checked", () => {
    expect(resolveConfig(withRole({ model: "big" }))).toMatchObject({ model: "big", effort: "high" });
    const input = withRole({ model: "big" });
    expect(refusal({ ...input, asked: { ...input.asked, effort: "low" } })).toMatchObject({
      code: "INVALID_ARGUMENT",
      details: { argument: "reasoning_effort", available: ["high", "ultra"] },
    });
  });

  test.for([
    ["sonnet", null],
    ["anthropic/claude-sonnet-4", null],
    ["far/huge", null],
    ["sonnet", "open"],
  ] as const)("SPN-7 a role's model that is not here is passed over: %s", ([model, provider]) => {
    const input = withRole({ model });
    const config = resolveConfig({ ...input, asked: { ...input.asked, provider } });
    expect(config).toMatchObject(provider === null ? { model: "small", effort: "high" } : { model: null });
    expect(config.adjustments).toEqual([{ field: "model", asked: model, effect: "ignored" }]);
  });

  test.for([
    ["anthropic/claude-sonnet-4", "anthropic/claude-sonnet-4"],
    ["open/opus", "opus"],
  ] as const)("SPN-7 a role's model at a provider that takes any name is taken: %s", ([model, taken]) => {
    const input = withRole({ model });
    expect(resolveConfig({ ...input, asked: { ...input.asked, provider: "open" } })).toMatchObject({
      provider: "open",
      model: taken,
      adjustments: [],
    });
  });

  test("SPN-7 a role's effort stays strict where its model is taken, and where it names none", () => {
    for (const model of ["big", null]) {
      expect(refusal(withRole({ model, effort: "odd" }))).toMatchObject({ code: "INVALID_ARGUMENT" });
    }
  });

  test("an unknown model is refused with the models there are", () => {
    const error = refusal({ ...base, asked: { model: "huge" } });
    expect(error.code).toBe("INVALID_ARGUMENT");
    expect(error.details["available"]).toEqual(["small", "big", "plain", "far/other", "open/(any name)"]);
    expect(error.message).toContain("small, big, plain");
  });

  test("names of an object's own machinery are no models and no providers", () => {
    expect(refusal({ ...base, asked: { model: "constructor" } }).code).toBe("INVALID_ARGUMENT");
    expect(refusal({ ...base, asked: { model: "far/__proto__" } }).code).toBe("INVALID_ARGUMENT");
  });

  test("a provider without a list takes any model and effort", () => {
    expect(resolveConfig({ ...base, asked: { model: "open/a/b", effort: "odd" } })).toMatchObject({
      provider: "open",
      model: "a/b",
      effort: "odd",
      contextWindow: null,
    });
  });

  test("an unsupported effort is refused with the model's efforts", () => {
    const error = refusal({ ...base, asked: { model: "big", effort: "low" } });
    expect(error.details).toMatchObject({
      argument: "reasoning_effort",
      model: "big",
      available: ["high", "ultra"],
    });
  });

  test("a model that does not collaborate makes a leaf", () => {
    expect(resolveConfig({ ...base, asked: { model: "plain" } }).leaf).toBe(true);
  });

  test("a root wants a provider and takes every tool", () => {
    expect(refusal({ ...base, parent: null }).details["argument"]).toBe("provider");
    expect(resolveConfig({ ...base, parent: null, defaults: { provider: "near" } })).toMatchObject({
      model: "small",
      effort: "low",
      tools: ["look", "change", "unknown_effects"],
    });
  });
});

describe("order of faults", () => {
  test("model, then effort, then role, then effects", () => {
    const asked = { model: "huge", effort: "odd", role: "nobody", effects: ["write"] as const };
    const input = { ...base, policy: { effects: [["read"] as const], workspace: null } };
    const argumentOf = (changes: object) =>
      refusal({ ...input, asked: { ...asked, ...changes } }).details["argument"];
    expect(argumentOf({})).toBe("model");
    expect(argumentOf({ model: "big" })).toBe("reasoning_effort");
    expect(argumentOf({ model: "big", effort: "high" })).toBe("agent_type");
    expect(argumentOf({ model: "big", effort: "high", role: "worker" })).toBe("effects");
  });
});

describe("effects", () => {
  const readOnly = {
    ...base,
    policy: { effects: [["read", "network"] as const, ["read", "write"] as const], workspace: null },
  };

  test("POL-1 the ceiling is what every ancestor allows, and a tool without declared effects wants all", () => {
    expect(resolveConfig(readOnly)).toMatchObject({ effects: ["read"], tools: ["look"] });
  });

  test("POL-1 an explicit argument that widens is refused", () => {
    expect(refusal({ ...readOnly, asked: { effects: ["read", "write"] } }).code).toBe(
      "AUTHORITY_ESCALATION_DENIED",
    );
    expect(refusal({ ...readOnly, asked: { tools: ["change"] } }).code).toBe("AUTHORITY_ESCALATION_DENIED");
    expect(refusal({ ...base, asked: { effects: ["read"], tools: ["unknown_effects"] } }).code).toBe(
      "AUTHORITY_ESCALATION_DENIED",
    );
  });

  test("POL-1 an explicit argument that narrows is kept to", () => {
    expect(resolveConfig({ ...base, asked: { effects: ["write", "read"] } })).toMatchObject({
      effects: ["read", "write"],
      tools: ["look", "change"],
      adjustments: [],
    });
  });

  test("POL-1 POL-2 a role that widens is clipped, and the clip is shown", () => {
    const role = withRole({ effects: ["read", "execute"], tools: ["look", "change"] });
    const config = resolveConfig({ ...role, policy: readOnly.policy });
    expect(config).toMatchObject({ effects: ["read"], tools: ["look"] });
    expect(config.adjustments).toEqual([
      { field: "effects", asked: "read, execute", effect: "clipped" },
      { field: "tools", asked: "look, change", effect: "clipped" },
    ]);
  });

  test("POL-1 the parent's list of tools is no ceiling for a role", () => {
    const role = withRole({ tools: ["change"] });
    expect(resolveConfig({ ...role, parent: { ...parent, tools: ["look"] } }).tools).toEqual(["change"]);
  });

  test("POL-1 what a role denies is gone, and nothing comes in its place", () => {
    const role = withRole({ denied: ["change"] });
    expect(resolveConfig({ ...role, parent: { ...parent, tools: ["look", "change"] } }).tools).toEqual([
      "look",
    ]);
  });

  test("POL-2 where roles carry no authority, theirs is ignored and reported so; their tools still narrow", () => {
    const input = withRole({
      effects: ["read"],
      tools: ["change"],
      model: "far/other",
      authority: [{ field: "sandbox_mode", asked: "read-only" }],
      ignored: [{ field: "mcp_servers", asked: "{}" }],
    });
    const config = resolveConfig({ ...input, rolesCarryAuthority: false });
    expect(config).toMatchObject({ effects: EFFECTS, tools: ["change"], provider: "near", model: "small" });
    expect(config.adjustments).toEqual([
      { field: "mcp_servers", asked: "{}", effect: "ignored" },
      { field: "sandbox_mode", asked: "read-only", effect: "ignored" },
      { field: "model", asked: "far/other", effect: "ignored" },
    ]);
  });

  test("a default beyond the ceiling is clipped", () => {
    const config = resolveConfig({ ...readOnly, defaults: { effects: ["read", "write"] } });
    expect(config.effects).toEqual(["read"]);
    expect(config.adjustments).toHaveLength(1);
  });

  test("an unknown tool is refused with the tools there are", () => {
    expect(refusal({ ...base, asked: { tools: ["hammer"] } }).details["available"]).toEqual([
      "look",
      "change",
      "unknown_effects",
    ]);
  });

  test("a stored agent loses what its ancestors have lost, and gains nothing back", () => {
    const config = resolveConfig({ ...base, asked: { effects: ["read", "write"] } });
    expect(withinCeiling(config, [["read"]], tools)).toEqual({ effects: ["read"], tools: ["look"] });
    expect(withinCeiling(config, [EFFECTS], tools).effects).toEqual(["read", "write"]);
  });
});

describe("workspace", () => {
  const input = { ...base, policy: { effects: [], workspace: "/home/project" } };

  test("POL-1 lies inside the caller's", () => {
    expect(resolveConfig({ ...input, asked: { workspace: "/home/project/a/../b" } }).workspace).toBe(
      "/home/project/b",
    );
    for (const workspace of ["/home", "/home/project-2", "/home/project/../other"]) {
      expect(refusal({ ...input, asked: { workspace } }).code).toBe("AUTHORITY_ESCALATION_DENIED");
    }
  });

  test("is absolute", () => {
    expect(refusal({ ...input, asked: { workspace: "a" } }).code).toBe("INVALID_ARGUMENT");
  });

  test("is that of the live policy, not of the stored parent", () => {
    const moved = { ...base, policy: { effects: [], workspace: "/srv/new" } };
    expect(resolveConfig(moved).workspace).toBe("/srv/new");
  });
});

describe("the rest", () => {
  test("instructions are the base, then the role's", () => {
    const input = withRole({ instructions: "Role." });
    expect(resolveConfig({ ...input, defaults: { instructions: "Base." } }).instructions).toBe(
      "Base.\n\nRole.",
    );
    expect(resolveConfig(base).instructions).toBeNull();
  });

  test("an empty mode hint is a choice", () => {
    expect(resolveConfig({ ...base, asked: { modeHint: "" }, defaults: { modeHint: "x" } }).modeHint).toBe(
      "",
    );
  });

  test("BUD-7 a money budget on a model without a price is refused at the spawn", () => {
    const asked = { budgets: { money: 1 } };
    expect(refusal({ ...base, asked }).details["argument"]).toBe("budgets.money");
    expect(refusal({ ...base, budgetsAbove: [{ money: 0 }] }).details["argument"]).toBe("budgets.money");
    const prices = { "near/small": { input: 1, cachedInput: 1, output: 1 } };
    expect(resolveConfig({ ...base, asked, prices }).budgets).toEqual({ money: 1 });
    expect(resolveConfig({ ...base, asked: { budgets: { money: null } } }).budgets).toEqual({ money: null });
  });

  test("SPN-7 equal configurations have equal hashes, whatever was asked for", () => {
    const plain = resolveConfig(base);
    const asked = resolveConfig({ ...base, asked: { model: "small", effort: "high" } });
    expect(asked.policyHash).toBe(plain.policyHash);
    expect(policyHash(plain)).toBe(plain.policyHash);
    expect(resolveConfig({ ...base, asked: { effects: ["read"] } }).policyHash).not.toBe(plain.policyHash);
  });
});
