import { expect, it, onTestFinished } from 'vitest';
import { bringUp } from '../../../../src/app/networks/up.ts';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { RotationListener } from '../../../../src/app/run/listeners/rotation-listener.ts';
import { Locked, Unreachable } from '../../../../src/core/errors/index.ts';
import type { Joined } from '../../../../src/store/state/state.ts';
import { dialled, options, peer } from '../../../core/samples.ts';
import { eventually } from '../../../lab/eventually.ts';
import { joinedTo, mapAt } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';
import { passOf } from '../pass-of.ts';

const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
const hour = 3_600;

/** A host whose key is as old as its clock says, and its listener; the service pushes changes. */
async function watch(changes: Partial<Joined> = {}) {
  const now = new Date(1_700_000_000_000 + 1_000_000);
  const keySince = now.toISOString();
  const rotating = { ...options, rotateEvery: hour };
  const simulated = await SimulatedHost.with(joinedTo(map, { keySince, options: rotating, ...changes }));
  let keys = 100;
  const random = () => {
    keys += 1;
    return new Uint8Array(32).fill(keys);
  };
  Object.assign(simulated.tools, { random });
  await bringUp(simulated.tools);
  await simulated.tools.store.amendNotes('cpn0', {
    sync: { mode: 'push', lastSuccess: keySince, error: null, refused: null },
  });
  let triggers = 0;
  const rotation = new RotationListener(simulated.tools, 'cpn0', 5_000, () => {
    triggers += 1;
  });
  const ending = new AbortController();
  const watching = rotation.run(ending.signal);
  const end = async () => {
    ending.abort();
    await watching;
  };
  onTestFinished(end);
  const note = async () => rotation.onPass(passOf(await evaluateNetwork(simulated.tools, await simulated.state())));
  const tries = (count: number) => eventually(`${count} tries`, () => triggers === count);
  return { simulated, note, tries, end, triggers: () => triggers };
}

it('rotates the key when it is old enough, each time, and not before', async () => {
  const { simulated, note, tries } = await watch();
  await note();
  simulated.seconds += hour - 1;
  await note();
  expect(simulated.service.registeredKeys).toEqual([]);
  for (const count of [1, 2]) {
    simulated.seconds += 1.1 * hour;
    await note();
    await tries(count);
    expect(simulated.service.registeredKeys).toHaveLength(count);
    expect(Date.parse((await simulated.state()).keySince)).toBeGreaterThan(simulated.tools.now().getTime() - 1_000);
    await note();
  }
  expect(simulated.service.registeredKeys).toHaveLength(2);
});

it('does not rotate unless it is configured, changes are pushed, no change waits for a rollback, and no device dials this host', async () => {
  const held = mapAt('"1"', [peer(2, { endpoint: dialled(2) }), peer(3, { via: { connector: 1 } })]);
  const cases: Partial<Joined>[] = [{ options }, {}, { refused: '"9"' }, { membership: joinedTo(held).membership }];
  for (const [at, changes] of cases.entries()) {
    const { simulated, note, end } = await watch(changes);
    if (at === 1) {
      await simulated.tools.store.amendNotes('cpn0', {
        sync: { mode: 'poll', lastSuccess: null, error: null, refused: null },
      });
    }
    simulated.seconds += 100 * hour;
    await note();
    // A rotation that began completes before the listener ends.
    await new Promise(setImmediate);
    await end();
    expect((await simulated.state()).rotation).toBeNull();
    expect(simulated.service.registeredKeys).toEqual([]);
  }
});

it('retries after an hour, and sooner to complete a rotation that began', async () => {
  const { simulated, note, tries, triggers } = await watch();
  const gone = (delivered: boolean) =>
    new Unreachable('https://x', 'gone', { delivered, heard: false, retryAfterMs: null });
  simulated.service.onRegisterKey = () => Promise.reject(gone(false));
  simulated.seconds += 2 * hour;
  await note();
  await tries(1);
  simulated.seconds += hour - 1;
  await note();
  expect(triggers()).toBe(1);
  simulated.seconds += 1;
  simulated.service.onRegisterKey = () => Promise.reject(gone(true));
  await note();
  await tries(2);
  expect((await simulated.state()).rotation).toMatchObject({ phase: 'announcing' });
  simulated.service.onRegisterKey = () => true;
  await note();
  await tries(3);
  expect((await simulated.state()).rotation).toBeNull();
  const said = simulated.logged.filter(({ level }) => level !== 'debug').map(({ message }) => message);
  expect(said).toEqual([
    'the key could not be changed',
    'the key could not be changed',
    'the key can be changed again',
    'key changed',
  ]);
});

it('waits an hour too where a command holds the lock, which is logged', async () => {
  const { simulated, note, tries, triggers } = await watch();
  const { lock } = simulated.tools.store;
  simulated.tools.store.lock = async () => {
    throw new Locked('/run/cpn/lock', '7');
  };
  simulated.seconds += 2 * hour;
  await note();
  await tries(1);
  simulated.tools.store.lock = lock;
  simulated.seconds += hour - 1;
  await note();
  expect(triggers()).toBe(1);
  const warnings = simulated.logged.filter(({ level }) => level === 'warn').map(({ message }) => message);
  expect(warnings).toEqual(['the key could not be changed']);
  simulated.seconds += 1;
  await note();
  await tries(2);
  expect(simulated.service.registeredKeys).toHaveLength(1);
});
