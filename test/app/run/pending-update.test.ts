import { expect, it } from 'vitest';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { PendingUpdate } from '../../../src/app/run/pending-update.ts';
import { address } from '../../core/samples.ts';
import { mapAt } from '../joined-state.ts';

const map = mapAt('"1"', []);
const resolved = { 'edge.example.net': [address('198.51.100.1')] };

function start() {
  const triggers: unknown[] = [];
  return { triggers, update: new PendingUpdate((inMs) => void triggers.push(inMs)) };
}

it('maps and addresses are taken once, and trigger a pass', () => {
  const { update, triggers } = start();
  void update.addMap({ ...noUpdate, map });
  update.addResolved(resolved);
  expect(triggers).toHaveLength(2);
  expect(update.take()).toMatchObject({ map, resolved });
  expect(update.take()).toEqual({ map: null, resolved: {} });
});

it('measurements apply to every pass until they change, and trigger none', () => {
  const { update, triggers } = start();
  update.set({ failed: [{ peer: 2, back: false }] });
  update.set({ pathMtu: null });
  for (let pass = 0; pass < 2; pass += 1) {
    expect(update.take()).toMatchObject({ failed: [{ peer: 2, back: false }], pathMtu: null });
  }
  update.set({ pathMtu: undefined });
  expect(update.take().pathMtu).toBeUndefined();
  expect(triggers).toEqual([]);
});

it('the sender of a map receives the result of the pass that took it', async () => {
  const { update } = start();
  const first = update.addMap({ ...noUpdate, map });
  update.take();
  const second = update.addMap({ ...noUpdate, map });
  update.settle(true);
  expect(await first).toBe(true);
  update.take();
  update.settle(false);
  expect(await second).toBe(false);
});

it('after the last pass no map is applied', async () => {
  const { update, triggers } = start();
  const taken = update.addMap({ ...noUpdate, map });
  update.take();
  const waiting = update.addMap({ ...noUpdate, map });
  update.close();
  expect(await Promise.all([taken, waiting, update.addMap({ ...noUpdate, map })])).toEqual([false, false, false]);
  expect(triggers).toHaveLength(2);
});

it('the map of a pass over an unobservable host is input of the next pass too, until there is a newer one', () => {
  const { update } = start();
  const newer = mapAt('"2"', []);
  void update.addMap({ ...noUpdate, map });
  update.take();
  update.settle(false, true);
  expect(update.take().map).toBe(map);
  update.settle(false, true);
  void update.addMap({ ...noUpdate, map: newer });
  expect(update.take().map).toBe(newer);
  update.settle(true);
  expect(update.take().map).toBeNull();
});

it('a newer address of a name replaces that of the map', () => {
  const { update } = start();
  const older = { 'edge.example.net': [address('198.51.100.9')], 'other.example.net': [address('198.51.100.8')] };
  void update.addMap({ ...noUpdate, map, resolved: older });
  update.addResolved(resolved);
  expect(update.take().resolved).toEqual({ ...older, ...resolved });
  expect(update.take().resolved).toEqual({});
});
