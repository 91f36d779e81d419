import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Keeper } from '../../../src/app/run/keeper.ts';
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
