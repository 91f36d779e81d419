import { expect, it, onTestFinished } from 'vitest';
import { bringUp } from '../../../src/app/reconcile.ts';
import { RotationWatch } from '../../../src/app/run/rotation-watch.ts';
import { survey } from '../../../src/app/survey.ts';
import { Unreachable } from '../../../src/core/errors.ts';
import type { Joined } from '../../../src/store/state.ts';
import { dialled, options, peer } from '../../core/samples.ts';
import { eventually } from '../../lab/eventually.ts';
import { Desk, joinedTo, mapAt } from '../desk.ts';

const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
const hour = 3_600;

/** A host whose key is as old as its clock says, and the watch over it; the service tells of changes at once. */
async function watch(changes: Partial<Joined> = {}) {
  const now = new Date(1_700_000_000_000 + 1_000_000);
  const keySince = now.toISOString();
  const rotating = { ...options, rotateEvery: hour };
  const desk = await Desk.with(joinedTo(map, { keySince, options: rotating, ...changes }));
  let keys = 100;
  const random = () => {
    keys += 1;
    return new Uint8Array(32).fill(keys);
  };
  Object.assign(desk.tools, { random });
  await bringUp(desk.tools);
  await desk.tools.store.amendNotes('cpn0', {
    sync: { mode: 'push', lastSuccess: keySince, error: null, refused: null },
  });
  let rings = 0;
  const rotation = new RotationWatch(desk.tools, 'cpn0', 5_000, () => {
    rings += 1;
  });
  const ending = new AbortController();
  const watching = rotation.watch(ending.signal);
  const end = async () => {
    ending.abort();
    await watching;
  };
  onTestFinished(end);
  const note = async () => rotation.note(await survey(desk.tools, await desk.state()));
  const tries = (count: number) => eventually(`${count} tries`, () => rings === count);
  return { desk, note, tries, end, rings: () => rings };
}

it('makes a new key when the old one is old enough, each time, and not before', async () => {
  const { desk, note, tries } = await watch();
  await note();
  desk.seconds += hour - 1;
  await note();
  expect(desk.registered).toEqual([]);
  for (const count of [1, 2]) {
    desk.seconds += 1.1 * hour;
    await note();
    await tries(count);
    expect(desk.registered).toHaveLength(count);
    expect(Date.parse((await desk.state()).keySince)).toBeGreaterThan(desk.tools.now().getTime() - 1_000);
    await note();
  }
  expect(desk.registered).toHaveLength(2);
});

it('makes none where nobody asked for it, or the others would not hear of it at once, or a change waits to be taken back', async () => {
  const cases: Partial<Joined>[] = [{ options }, {}, { refused: '"9"' }];
  for (const [at, changes] of cases.entries()) {
    const { desk, note, end } = await watch(changes);
    if (at === 1) {
      await desk.tools.store.amendNotes('cpn0', {
        sync: { mode: 'poll', lastSuccess: null, error: null, refused: null },
      });
    }
    desk.seconds += 100 * hour;
    await note();
    // What was begun by now is ended before the watch ends.
    await new Promise(setImmediate);
    await end();
    expect((await desk.state()).rotation).toBeNull();
    expect(desk.registered).toEqual([]);
  }
});

it('tries again after an hour where it failed, and sooner to end what was begun', async () => {
  const { desk, note, tries, rings } = await watch();
  const gone = (delivered: boolean) =>
    new Unreachable('https://x', 'gone', { delivered, heard: false, retryAfterMs: null });
  desk.registers = () => Promise.reject(gone(false));
  desk.seconds += 2 * hour;
  await note();
  await tries(1);
  desk.seconds += hour - 1;
  await note();
  expect(rings()).toBe(1);
  desk.seconds += 1;
  desk.registers = () => Promise.reject(gone(true));
  await note();
  await tries(2);
  expect((await desk.state()).rotation).toMatchObject({ phase: 'announcing' });
  desk.registers = () => true;
  await note();
  await tries(3);
  expect((await desk.state()).rotation).toBeNull();
  const said = desk.logged.filter(({ level }) => level !== 'debug').map(({ message }) => message);
  expect(said).toEqual([
    'the key could not be changed',
    'the key could not be changed',
    'the key can be changed again',
    'key changed',
  ]);
});
