import { describe, expect, it } from 'vitest';
import { readFeatures, saveFeatures, withExtensions } from '../../src/app/service-features.ts';
import { Refused, Unreachable } from '../../src/core/errors/index.ts';
import type { Feature } from '../../src/core/map/features.ts';
import type { HostStore } from '../../src/store/store.ts';
import { joinedTo, mapAt } from './joined-state.ts';
import { SimulatedHost } from './simulated-host.ts';

const map = mapAt('"1"', []);
const known: readonly Feature[] = ['map-wait'];
const newer: readonly Feature[] = ['map-wait', 'peer-key'];
const away = new Unreachable('https://x', 'no', { delivered: false, heard: false, retryAfterMs: null });
const refused = new Refused(404, 'the description', 'nothing is there', null);

const start = async (features: readonly Feature[] | null = known) => {
  const simulated = await SimulatedHost.with(joinedTo(map, { features }));
  const saved = async () => (await simulated.state()).features;
  return { simulated, tools: simulated.tools, state: await simulated.state(), saved };
};

describe('the description of a service', () => {
  it.each<[string, () => Promise<{ features: readonly Feature[]; etag: null } | null>, unknown, unknown]>([
    ['is read', async () => ({ features: newer, etag: null }), newer, newer],
    ['is unchanged', async () => null, known, null],
    ['cannot be reached', () => Promise.reject(away), known, null],
    ['is refused', () => Promise.reject(refused), known, []],
  ])('%s', async (_, describes, before, never) => {
    const { simulated, tools, state } = await start();
    simulated.service.onDescribe = describes;
    expect(await readFeatures(tools, state)).toEqual(before);
    expect(await readFeatures(tools, { ...state, features: null })).toEqual(never);
  });

  it('is saved if it differs, without a lock otherwise', async () => {
    const { tools, saved } = await start();
    let locks = 0;
    const lock: HostStore['lock'] = (work) => {
      locks += 1;
      return tools.store.lock(work);
    };
    const counting = { store: { ...tools.store, lock } };
    expect([await saveFeatures(counting, 'cpn0', [...known]), locks]).toEqual([false, 0]);
    expect([await saveFeatures(counting, 'cpn0', newer), locks, await saved()]).toEqual([true, 1, newer]);
    expect(await saveFeatures(counting, 'cpn9', newer)).toBe(false);
  });

  it('is saved into what another process wrote before the lock, and not again', async () => {
    for (const written of [known, newer]) {
      const { simulated, tools, state } = await start();
      let writes = 0;
      const write: HostStore['write'] = (each) => {
        writes += 1;
        return tools.store.write(each);
      };
      const lock: HostStore['lock'] = async (work) => {
        await tools.store.write({ ...state, features: written, drained: true });
        return tools.store.lock(work);
      };
      await saveFeatures({ store: { ...tools.store, write, lock } }, 'cpn0', newer);
      expect(await simulated.state()).toMatchObject({ features: newer, drained: true });
      expect(writes).toBe(written === known ? 1 : 0);
    }
  });
});

describe('a call of an extension', () => {
  it('reads a description that was never read first, and fails if that is not possible', async () => {
    const { simulated, tools, state, saved } = await start(null);
    simulated.service.onDescribe = () => Promise.reject(away);
    await expect(withExtensions(tools, state, {}, async () => 'done')).rejects.toBe(away);
    simulated.service.onDescribe = () => Promise.reject(refused);
    expect(await withExtensions(tools, state, {}, async () => simulated.service.knownService?.features)).toEqual([]);
    expect(await saved()).toEqual([]);
  });

  it('reads the description again after an operation that is not there, also if the call fails', async () => {
    const { simulated, tools, state, saved } = await start();
    simulated.service.onDescribe = async () => ({ features: newer, etag: null });
    expect(await withExtensions(tools, state, {}, async () => 'done')).toBe('done');
    expect(await saved()).toEqual(known);
    const failing = withExtensions(tools, state, {}, async () => {
      simulated.service.connectOptions?.onAbsent?.();
      throw away;
    });
    await expect(failing).rejects.toBe(away);
    expect(await saved()).toEqual(newer);
  });

  it('saves nothing under the lock of its caller', async () => {
    const { simulated, tools, state, saved } = await start(null);
    simulated.service.onDescribe = async () => ({ features: newer, etag: null });
    await withExtensions(tools, state, { isLocked: true }, async () => 'done');
    expect(await saved()).toBeNull();
  });
});
