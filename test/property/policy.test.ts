/** Laws of policy: effects only narrow, budgets hold, rates hold. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { admit, type BudgetScope } from "../../src/policy/budget.ts";
import { clip, narrow, within } from "../../src/policy/effects.ts";
import { admitRate } from "../../src/policy/rates.ts";
import { resolveConfig } from "../../src/policy/resolve-config.ts";
import { BUILT_IN_ROLES, loadRoles } from "../../src/policy/roles.ts";
import { type AgentConfig, EFFECTS } from "../../src/protocol/agent.ts";
import { CoppiceError } from "../../src/protocol/errors.ts";

const effects = fc.subarray([...EFFECTS]);
const names = ["a", "b", "c", "d"];
const tools = fc
  .array(fc.record({ name: fc.constantFrom(...names), effects: fc.option(effects, { nil: [] }) }), {
    maxLength: 4,
  })
  .map((all) => all.filter((tool, at) => all.findIndex(({ name }) => name === tool.name) === at));

describe("effects", () => {
  test("narrow, clip and within agree", () => {
    fc.assert(
      fc.property(effects, effects, (asked, ceiling) => {
        const { granted, denied } = clip(asked, ceiling);
        expect(within(granted, ceiling) && within(granted, asked)).toBe(true);
        expect([...granted, ...denied].toSorted()).toEqual([...asked].toSorted());
        expect(granted).toEqual(narrow(asked, ceiling));
        expect(denied.length === 0).toBe(within(asked, ceiling));
      }),
    );
  });

  const link = fc.record({
    asked: fc.option(effects, { nil: null }),
    role: fc.option(
      fc.record({
        effects: fc.option(effects, { nil: null }),
        tools: fc.option(fc.subarray(names), { nil: null }),
      }),
      {
        nil: null,
      },
    ),
    carries: fc.boolean(),
  });

  test("POL-1 along any chain of spawns effects only narrow, and every tool is within them", () => {
    fc.assert(
      fc.property(effects, tools, fc.array(link, { maxLength: 6 }), (ceiling, own, chain) => {
        let parent: AgentConfig | null = null;
        for (const { asked, role, carries } of chain) {
          const special = role === null ? null : { ...BUILT_IN_ROLES[0]!, name: "special", ...role };
          const set = loadRoles([], own);
          const roles = special === null ? set : { ...set, roles: new Map([["special", special]]) };
          let config: AgentConfig;
          try {
            config = resolveConfig({
              asked: { effects: asked, role: special?.name ?? null },
              defaults: { provider: "near" },
              parent,
              providers: [{ name: "near", defaultModel: null, models: null, effectiveEffects: null }],
              roles,
              tools: own,
              policy: { effects: [ceiling], workspace: null },
              prices: {},
              budgetsAbove: [],
              rolesCarryAuthority: carries,
            });
          } catch (error) {
            expect(CoppiceError.is(error) && error.code).toBe("AUTHORITY_ESCALATION_DENIED");
            expect(asked !== null && !within(asked, narrow(ceiling, parent?.effects ?? EFFECTS))).toBe(true);
            continue;
          }
          expect(within(config.effects, ceiling)).toBe(true);
          if (parent !== null) expect(within(config.effects, parent.effects)).toBe(true);
          if (asked !== null) expect(within(config.effects, asked)).toBe(true);
          for (const name of config.tools) {
            const declared = own.find((tool) => tool.name === name)!.effects;
            expect(within(declared.length === 0 ? EFFECTS : declared, config.effects)).toBe(true);
          }
          parent = config;
        }
      }),
    );
  });
});

describe("budgets", () => {
  const scope = fc.record({
    path: fc.constant("/root"),
    budget: fc.constantFrom("tokens", "money", "wallClock"),
    limit: fc.option(fc.nat(1000), { nil: null }),
    spent: fc.nat(1000),
    reserved: fc.nat(500),
  }) as fc.Arbitrary<BudgetScope>;
  const request = fc.record({ tokens: fc.nat(400), money: fc.option(fc.nat(400), { nil: null }) });

  test("a request that may start fits every scope beside all that is held", () => {
    fc.assert(
      fc.property(fc.array(scope, { maxLength: 5 }), request, (scopes, own) => {
        const { kind } = admit(scopes, own);
        const over = (held: (one: BudgetScope) => number): boolean =>
          scopes.some((one) => {
            const share = one.budget === "tokens" ? own.tokens : one.budget === "money" ? own.money : 1;
            return one.limit !== null && share !== null && held(one) + share > one.limit;
          });
        expect(kind === "exhausted").toBe(over(({ spent }) => spent));
        expect(kind === "start").toBe(!over(({ spent, reserved }) => spent + reserved));
      }),
    );
  });

  test("however requests start and end, what is spent never passes the limit", () => {
    const ending = fc.record({
      tokens: fc.integer({ min: 1, max: 300 }),
      used: fc.double({ min: 0, max: 1, noNaN: true }),
      late: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.nat(1000), fc.array(ending, { maxLength: 30 }), (limit, requests) => {
        let spent = 0;
        const held: { tokens: number; used: number }[] = [];
        const settle = (one: { tokens: number; used: number }): void => {
          spent += Math.floor(one.tokens * one.used);
        };
        for (const { tokens, used, late } of requests) {
          const reserved = held.reduce((sum, one) => sum + one.tokens, 0);
          const state = { path: "/root", budget: "tokens", limit, spent, reserved } as const;
          if (admit([state], { tokens, money: null }).kind !== "start") continue;
          if (late) held.push({ tokens, used });
          else settle({ tokens, used });
          expect(spent + held.reduce((sum, one) => sum + one.tokens, 0)).toBeLessThanOrEqual(limit);
        }
        for (const one of held) settle(one);
        expect(spent).toBeLessThanOrEqual(limit);
      }),
    );
  });
});

describe("rates", () => {
  test("no minute holds more than the limit, and the hint is exact", () => {
    const steps = fc.array(fc.nat(20_000), { maxLength: 60 });
    fc.assert(
      fc.property(fc.nat(8), steps, (limit, gaps) => {
        let now = 0;
        let times: readonly number[] = [];
        const admitted: number[] = [];
        for (const gap of gaps) {
          now += gap;
          const decision = admitRate(times, now, limit);
          if (decision.kind === "admitted") {
            times = decision.times;
            admitted.push(now);
            const end = now;
            expect(admitted.filter((time) => end - time < 60_000).length).toBeLessThanOrEqual(limit);
          } else if (decision.retryAfterMs === null) {
            expect(limit).toBe(0);
          } else {
            expect(admitRate(times, now + decision.retryAfterMs, limit).kind).toBe("admitted");
            expect(admitRate(times, now + decision.retryAfterMs - 1, limit).kind).toBe("refused");
          }
        }
      }),
    );
  });
});
