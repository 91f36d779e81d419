import { describe, expect, it } from 'vitest';
import { UnderlayListener } from '../../../../src/app/run/listeners/underlay-listener.ts';
import { address, bare, surroundings } from '../../../core/samples.ts';
import { passOf } from '../pass-of.ts';

describe('another underlay', () => {
  const seen = (...places: (typeof surroundings)[]) => {
    let changes = 0;
    const watch = new UnderlayListener(() => {
      changes += 1;
    });
    return places.map((place) => {
      watch.onPass(passOf({ actual: { ...bare, surroundings: place } }));
      return changes;
    });
  };

  it('is one with another subnet, gateway or resolver', () => {
    expect(seen(surroundings, { ...surroundings, connected: [] })).toEqual([0, 1]);
    expect(seen(surroundings, { ...surroundings, gateways: [] })).toEqual([0, 1]);
    expect(seen(surroundings, { ...surroundings, resolvers: [address('192.0.2.53')] })).toEqual([0, 1]);
  });
});
