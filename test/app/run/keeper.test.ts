import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Keeper } from '../../../src/app/run/keeper.ts';
import { Secret } from '../../../src/core/secret.ts';
import { dialled, peer } from '../../core/samples.ts';
import { eventually } from '../../lab/eventually.ts';
import { answerWith, Desk, joinedTo, mapAt } from '../desk.ts';

const first = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
const second = mapAt('"2"', [peer(3, { endpoint: dialled(3) })]);

it('a keeper comes to its end though news are on their way when it is told to', async () => {
  const desk = await Desk.with(joinedTo(first));
  const stop = new AbortController();
  desk.answers = [
    async (revision, wait) => {
      await eventually('a pass', () => desk.looks > 0);
      stop.abort();
      // Timers come in the order in which they are due: that of the keeper's bell came before.
      await sleep(10);
      return answerWith(second)(revision, wait);
    },
  ];
  const kept = new Keeper(desk.tools, 'cpn0', { interval: 3600, confirmMs: 0 }).keep(stop.signal).then(() => 'ended');
  expect(await Promise.race([kept, sleep(5000, 'still there')])).toBe('ended');
  expect((await desk.state()).membership.map.revision).toBe('"1"');
});

it('asks anew at once where a pass finds that the host has joined again', async () => {
  const state = joinedTo(first);
  const desk = await Desk.with(state);
  const stop = new AbortController();
  desk.answers = [
    answerWith(first, true),
    // A service that does not end what was asked with a token that is void.
    (_, wait) => new Promise((_, reject) => wait?.signal?.addEventListener('abort', () => reject(new Error('ended')))),
  ];
  const keeper = new Keeper(desk.tools, 'cpn0', { interval: 3600, confirmMs: 0 });
  const kept = keeper.keep(stop.signal);
  await eventually('a question', () => desk.asked.length === 2);
  const membership = { ...state.membership, accessToken: new Secret('cpp_y') };
  await desk.tools.store.write({ ...(await desk.state()), membership });
  keeper.hear({ kind: 'address', link: 'cpn0', removed: false });
  await eventually('a question with the new token', () => desk.asked.length > 2);
  stop.abort();
  await kept;
});
