import { expect, it } from 'vitest';
import { ServiceWatch } from '../../../src/app/run/service-watch.ts';
import { type Survey, survey } from '../../../src/app/survey.ts';
import type { Prefix } from '../../../src/core/cidr.ts';
import { Unreachable } from '../../../src/core/errors.ts';
import type { Joined } from '../../../src/store/state.ts';
import { eventually } from '../../lab/eventually.ts';
import type { Desk } from '../desk.ts';
import { one, range, serving, startServing, two } from '../serving.ts';

const unreachable = new Unreachable('https://x', 'refused', { delivered: false, heard: true, retryAfterMs: null });
const dead = (...routes: readonly Prefix[]) => ({ dead: routes, unloaded: null });
const warnings = (desk: Desk) => desk.logged.filter(({ level }) => level === 'warn').length;

async function watch(state: Joined): Promise<{ desk: Desk; watch: ServiceWatch; seen: Survey }> {
  const desk = await startServing(state);
  return { desk, watch: new ServiceWatch(desk.tools, 'cpn0'), seen: await survey(desk.tools, state) };
}

it('withdraws the routes whose LAN is dead, and of a drained connector everything', async () => {
  const { desk, watch: service, seen } = await watch(serving());
  service.follow(seen, dead(one));
  await eventually('it is told', () => desk.withdrawn.length === 1);
  service.follow(await survey(desk.tools, serving({ drained: true })), dead(one));
  await eventually('it is told', () => desk.withdrawn.length === 2);
  expect(desk.withdrawn).toEqual([[one], [range, one, two]]);
});

it('asks once at a time, and then for what was wanted last', async () => {
  const { desk, watch: service, seen } = await watch(serving());
  const first = Promise.withResolvers<void>();
  const asked: (readonly string[])[] = [];
  desk.withdraws = (prefixes) => {
    asked.push(prefixes);
    return first.promise;
  };
  service.follow(seen, dead(one));
  await eventually('it is asked', () => asked.length === 1);
  service.follow(seen, dead(one, two));
  service.follow(seen, dead(two));
  first.resolve();
  await eventually('it is told', () => desk.withdrawn.length === 2);
  expect(asked).toEqual([[one], [two]]);
});

it('asks again at the next look where that failed, and says so once', async () => {
  const { desk, watch: service, seen } = await watch(serving());
  let asked = 0;
  desk.withdraws = () => {
    asked += 1;
    throw unreachable;
  };
  for (const look of [1, 2, 3]) {
    service.follow(seen, dead(one));
    await eventually('it is asked', () => asked === look);
  }
  desk.withdraws = () => {};
  service.follow(seen, dead(one));
  await eventually('it is told', () => desk.withdrawn.length === 1);
  await eventually('the end of it', () => desk.logged.at(-1)?.message.includes('knows again'));
  expect(warnings(desk)).toBe(1);
});

it('outlives what nobody foresaw', async () => {
  const { desk, watch: service, seen } = await watch(serving());
  desk.withdraws = () => {
    throw new TypeError('a bug');
  };
  service.follow(seen, dead(one));
  await eventually('it is told', () => desk.logged.some(({ level }) => level === 'error'));
  desk.withdraws = () => {};
  service.follow(seen, dead(one));
  await eventually('it is told', () => desk.withdrawn.length === 1);
});

it('says nothing for a host that is no connector', async () => {
  const { desk, watch: service, seen } = await watch(serving({}, 'origin'));
  service.follow(seen, dead(one));
  expect(desk.patience).toBeUndefined();
});
