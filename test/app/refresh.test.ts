import { describe, expect, it } from 'vitest';
import { refresh } from '../../src/app/refresh.ts';
import type { NetworkMap } from '../../src/core/model.ts';
import type { Joined } from '../../src/store/state.ts';
import { peer } from '../core/samples.ts';
import { answerWith, Desk, joinedTo, mapAt } from './desk.ts';

const known = mapAt('"1"', [peer(2)]);

/** What the control plane is told that the host has. */
async function namedBy(map: NetworkMap, changes: Partial<Joined> = {}) {
  const state = joinedTo(map, changes);
  const desk = await Desk.with(state);
  desk.answers = [answerWith(mapAt('"3"', [peer(2), peer(3)]))];
  const { news } = await refresh(desk.tools, state);
  expect(news.map?.revision).toBe('"3"');
  return desk.asked.map(({ revision, base }) => ({ revision, base }));
}

describe('the newest map is asked for', () => {
  it('by its changes, where the host goes by the last one', async () => {
    expect(await namedBy(known)).toEqual([{ revision: '"1"', base: known }]);
  });

  it('whole, where the last one was refused: of that the host kept nothing but the revision', async () => {
    expect(await namedBy(known, { refused: '"2"' })).toEqual([{ revision: '"2"', base: null }]);
  });

  it('whole, where the last one has no revision', async () => {
    expect(await namedBy({ ...known, revision: null })).toEqual([{ revision: null, base: null }]);
  });
});
