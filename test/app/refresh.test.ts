import { describe, expect, it } from 'vitest';
import { noNews, withNews } from '../../src/app/news.ts';
import { refresh } from '../../src/app/refresh.ts';
import type { NetworkMap } from '../../src/core/model.ts';
import type { Joined } from '../../src/store/state.ts';
import { address, keyPair, network, peer } from '../core/samples.ts';
import { answerWith, Desk, joinedTo, mapAt, self } from './desk.ts';

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

it('knows this host under a key that it got while the answer was held back', async () => {
  const state = joinedTo(mapAt('"1"', [peer(2)]));
  const desk = await Desk.with(state);
  const renamed = network([{ ...self, publicKey: keyPair(9).publicKey }, peer(2)], { revision: '"2"' });
  desk.answers = [
    async () => {
      await desk.tools.store.write({ ...state, keyPair: keyPair(9) });
      return { map: renamed, waited: true };
    },
  ];
  const { news, failure } = await refresh(desk.tools, state);
  expect(failure).toBeNull();
  expect(news).toMatchObject({ map: renamed, askedAs: keyPair(1).publicKey });
  const next = withNews(await desk.state(), news);
  expect(next.membership.map).toEqual(renamed);
});

describe('a service that lists an earlier key of this host', () => {
  const proof = { serial: 5, signature: 'signed' };
  const rotated = joinedTo(
    network([{ ...self, publicKey: keyPair(9).publicKey, proof }, peer(2)], { revision: '"1"' }),
    {
      keyPair: keyPair(9),
      keySerial: 5,
    },
  );
  /** The map of a backup, and what the service says once it was asked to list another key. */
  const former = (serial: number | null) =>
    network([{ ...self, ...(serial !== null && { proof: { serial, signature: 'old' } }) }, peer(2)], {
      revision: '"0"',
    });

  it.each([null, 4])(
    'is asked to list the present one, by the proof that it was given, where its own is older (%s)',
    async (serial) => {
      const desk = await Desk.with(rotated);
      desk.answers = [answerWith(former(serial)), answerWith(rotated.membership.map)];
      const { news, failure } = await refresh(desk.tools, rotated);
      expect([failure, news.map?.peers.length]).toEqual([null, 2]);
      expect(desk.registered).toEqual([{ publicKey: keyPair(9).publicKey, proof }]);
      expect(desk.asked.map(({ revision }) => revision)).toEqual(['"1"', null]);
    },
  );

  it('is not asked to where its proof is newer: a copy of this host has changed its key', async () => {
    const desk = await Desk.with(rotated);
    desk.answers = [answerWith(former(5))];
    const { failure } = await refresh(desk.tools, rotated);
    expect(failure?.message).toContain('lists another key for this host (peer 1)');
    expect(desk.registered).toEqual([]);
  });

  it('and takes no other changes nothing on this host', async () => {
    const desk = await Desk.with(rotated);
    desk.registers = async () => false;
    desk.answers = [answerWith(former(null))];
    const { news, failure } = await refresh(desk.tools, rotated);
    expect([failure?.name, news]).toEqual(['CannotRotate', noNews]);
  });
});

it('does not move this host to another address than it joined with', async () => {
  const state = joinedTo(known);
  const desk = await Desk.with(state);
  const moved = network([{ ...self, address: address('10.77.0.9') }, peer(2)], { revision: '"2"' });
  desk.answers = [answerWith(moved)];
  const { news, failure } = await refresh(desk.tools, state);
  expect(news).toEqual(noNews);
  expect(failure?.name).toBe('BadReply');
  expect(failure?.message).toContain('lists this host with 10.77.0.9, and it joined with 10.77.0.1');
});
