import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  findRouteTo,
  initialLanHealth,
  type LanHealth,
  type Probe,
  trackLanHealth,
} from '../../../src/core/health/lan-health.ts';
import { behindRoutes } from '../../../src/core/map/prefix-maps.ts';
import { address, prefix } from '../samples.ts';

const office = prefix('192.168.50.0/24');
const depot = prefix('192.168.60.0/24');
const wide = prefix('192.168.0.0/16');

const probe = (target: string, isGood: boolean | null): Probe => ({ target, address: address(target), isGood });
const nameless = (isGood: boolean | null): Probe => ({ target: 'nas.example', address: null, isGood });

/** What is dead after each of these rounds. */
function deadAfter(rounds: readonly (readonly Probe[])[], { routes = [office], before = initialLanHealth() } = {}) {
  let health: LanHealth = before;
  return rounds.map((round) => {
    health = trackLanHealth(health, round, behindRoutes(routes, []));
    return health.dead;
  });
}

const one = (isGood: boolean | null) => [probe('192.168.50.20', isGood)];
const [good, bad, unknown] = [one(true), one(false), one(null)];
const dead = [office];

describe('a route', () => {
  it('is dead after three bad rounds in a row, and alive again after three good ones', () => {
    const rounds = [bad, bad, bad, good, good, bad, good, good, good];
    expect(deadAfter(rounds)).toEqual([[], [], dead, dead, dead, dead, dead, dead, []]);
  });

  it('is not dead while one good round comes between', () => {
    expect(deadAfter([bad, bad, good, bad, bad, good]).flat()).toEqual([]);
  });

  it('that was dead before the first round is dead until a good round', () => {
    expect(deadAfter([good, good, good], { before: initialLanHealth(dead) })).toEqual([dead, dead, []]);
    expect(deadAfter([unknown, bad, good, good], { before: initialLanHealth(dead) }).at(-1)).toEqual(dead);
  });

  it('is alive while one of its targets is, and alive again by one of them', () => {
    const two = (first: boolean, second: boolean) => [probe('192.168.50.20', first), probe('192.168.50.21', second)];
    const failing = Array.from({ length: 5 }, () => two(false, true));
    const gone = Array.from({ length: 3 }, () => two(false, false));
    expect(deadAfter([...failing, ...gone, ...failing])).toEqual([
      ...failing.map(() => []),
      ...[[], [], dead],
      ...[dead, dead, [], [], []],
    ]);
  });

  it('is not judged by a round in which its target could not be asked', () => {
    expect(deadAfter([bad, bad, unknown, unknown, bad])).toEqual([[], [], [], [], dead]);
    expect(deadAfter([unknown, unknown, unknown]).flat()).toEqual([]);
  });

  it('without a target is alive, but for one that was dead and may have one whose address is unknown', () => {
    const routes = [office, depot];
    const before = initialLanHealth([office, depot]);
    expect(deadAfter([bad], { routes, before })).toEqual([[office]]);
    expect(deadAfter([[...bad, nameless(null)]], { routes, before })).toEqual([[office, depot]]);
    expect(deadAfter([[nameless(null)], [nameless(null)], [nameless(null)]])).toEqual([[], [], []]);
  });

  it('is judged by the targets that are reached by it, and by no more specific one', () => {
    expect(findRouteTo(address('192.168.50.20'), behindRoutes([wide, office], []))).toBe(office);
    expect(findRouteTo(address('192.168.51.20'), behindRoutes([wide, office], []))).toBe(wide);
    expect(findRouteTo(address('10.0.0.1'), behindRoutes([wide, office], []))).toBeNull();
    const rounds = [bad, bad, bad];
    expect(deadAfter(rounds, { routes: [wide, office] }).at(-1)).toEqual([office]);
  });

  it('that is mapped is judged by targets with local addresses', () => {
    const maps = [{ route: prefix('10.201.1.0/24'), local: office }];
    const served = behindRoutes([prefix('10.201.1.0/24')], maps);
    expect(findRouteTo(address('192.168.50.20'), served)).toBe('10.201.1.0/24');
    expect(findRouteTo(address('10.201.1.20'), served)).toBeNull();
    const health = [bad, bad, bad].reduce((before, round) => trackLanHealth(before, round, served), initialLanHealth());
    expect(health.dead).toEqual(['10.201.1.0/24']);
  });

  it('that the connector serves no more is not dead', () => {
    expect(deadAfter([bad], { routes: [], before: initialLanHealth([office]) })).toEqual([[]]);
  });
});

describe('whatever the rounds show', () => {
  const targets = ['192.168.50.20', '192.168.50.21', '192.168.60.20'];
  const rounds = fc.array(fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()), { maxLength: 12 });
  const routes = [office, depot];

  /** The rule as it is written in the description of `followLan`, by looking back. */
  function judge(columns: readonly boolean[][], wasDead: boolean): boolean {
    const last = columns.map((column) => column.slice(-3));
    if (wasDead) return !last.some((three) => three.length === 3 && three.every(Boolean));
    return last.every((three) => three.length === 3 && !three.some(Boolean));
  }

  it('a route changes only by three rounds in a row, independent of other routes', () => {
    fc.assert(
      fc.property(rounds, (seen) => {
        let expected = [false, false];
        let health = initialLanHealth();
        seen.forEach((round, at) => {
          const probes = targets.map((target, index) => probe(target, round[index] ?? false));
          health = trackLanHealth(health, probes, behindRoutes(routes, []));
          const column = (index: number) => seen.slice(0, at + 1).map((each) => each[index] ?? false);
          expected = [judge([column(0), column(1)], expected[0] ?? false), judge([column(2)], expected[1] ?? false)];
          expect(health.dead).toEqual(routes.filter((_, index) => expected[index]));
        });
      }),
    );
  });
});
