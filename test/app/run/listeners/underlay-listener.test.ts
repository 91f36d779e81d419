import { describe, expect, it } from 'vitest';
import { UnderlayListener } from '../../../../src/app/run/listeners/underlay-listener.ts';
import { address, bare, underlay } from '../../../core/samples.ts';
import { passOf } from '../pass-of.ts';

describe('another underlay', () => {
  const seen = (...places: (typeof underlay)[]) => {
    let changes = 0;
    const watch = new UnderlayListener(() => {
      changes += 1;
    });
    return places.map((place) => {
      watch.onPass(passOf({ actual: { ...bare, underlay: place } }));
      return changes;
    });
  };

  it('is one with another subnet, gateway or resolver', () => {
    expect(seen(underlay, { ...underlay, connected: [] })).toEqual([0, 1]);
    expect(seen(underlay, { ...underlay, gateways: [] })).toEqual([0, 1]);
    expect(seen(underlay, { ...underlay, resolvers: [address('192.0.2.53')] })).toEqual([0, 1]);
  });

  it('is one with another path to the control plane, whatever table or rule leads there', () => {
    const by = (paths: Record<string, string>) => ({ ...underlay, paths });
    const eth1 = { '203.0.113.1': 'eth1 192.0.2.1 192.0.2.31' };
    const eth0 = { '203.0.113.1': 'eth0 203.0.113.254 203.0.113.31' };
    expect(seen(by(eth1), by(eth1), by(eth0), by({ '203.0.113.1': 'Network is unreachable' }))).toEqual([0, 0, 1, 2]);
    // Other addresses of its name are no other underlay.
    expect(seen(by(eth1), by({ ...eth1, '203.0.113.2': 'eth0 - -' }), by({ '203.0.113.2': 'eth0 - -' }))).toEqual([
      0, 0, 0,
    ]);
  });
});
