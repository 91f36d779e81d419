import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { acceptPeer, findPeer } from '../../../src/app/networks/accept.ts';
import { Interrupted } from '../../../src/core/errors/index.ts';
import type { Pin } from '../../../src/core/pins/match-pins.ts';
import { address, dialled, keyPair, options, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
const known = (number: number) => ({
  ...{ peer: number, address: address(`10.77.0.${number}`), publicKey: keyPair(number).publicKey },
  ...{ identity: null, serial: 0 },
});
/** A peer that the map held back: the service lists it as `number + 30`, with another address. */
const held = (number: number): Pin => ({ ...known(number), claimed: known(number + 30) });
const pins: readonly Pin[] = [
  { ...known(2), claimed: { ...known(2), address: address('10.77.0.99') } },
  held(3),
  held(4),
];

const start = () => SimulatedHost.with(joinedTo(map, { pins, options: { ...options, pin: 'strict' } }));
const waiting = async (simulated: SimulatedHost) =>
  (await simulated.state()).pins.flatMap(({ peer, claimed }) => (claimed === null ? [] : [peer]));

it.each([
  ['a listed peer by its id', '2', 2],
  ['a listed peer by its pinned address', '10.77.0.2', 2],
  ['a listed peer by its claimed address', '10.77.0.99', 2],
  ['the first peer that is held back', '33', 33],
  ['another peer that is held back', '34', 34],
  ['that one by its pinned address', '10.77.0.4', 34],
  ['that one by its claimed address', '10.77.0.34', 34],
])('finds %s', async (_, named, id) => {
  const { tools } = await start();
  expect(await findPeer(tools, named, undefined)).toMatchObject({ id, mismatch: { claimed: { peer: id } } });
});

it('reports a damaged state rather than an unknown peer, and hides no known peer by it', async () => {
  const { tools } = await start();
  await writeFile(join(dirname(tools.store.formerPath), 'cpn1.json'), '{', { mode: 0o600 });
  expect(await findPeer(tools, 'peer-2', undefined)).toMatchObject({ interface: 'cpn0', id: 2 });
  await expect(findPeer(tools, 'peer-9', undefined)).rejects.toThrow('cpn1.json is damaged');
});

it('keeps what was accepted after a failure other than a signal', async () => {
  const simulated = await start();
  simulated.service.mapReplies = [
    () => {
      throw new Error('a bug');
    },
  ];
  await expect(acceptPeer(simulated.tools, await findPeer(simulated.tools, '2', undefined))).rejects.toThrow('a bug');
  expect(await waiting(simulated)).not.toContain(2);
});

it.each([
  ['"1"', true],
  ['"2"', false],
])('takes back what was accepted after a signal, unless a pass saved another map: %s', async (revision, isUndone) => {
  const simulated = await start();
  const { tools, service } = simulated;
  service.mapReplies = [answerWith(map)];
  const { observe } = tools.host;
  tools.host.observe = async () => {
    tools.host.observe = observe;
    const state = await simulated.state();
    const newer = { ...state.membership, map: { ...state.membership.map, revision, name: `office ${revision}` } };
    if (revision !== '"1"') await tools.store.write({ ...state, membership: newer });
    throw new Interrupted('SIGINT');
  };
  const found = await findPeer(tools, '2', undefined);
  await expect(acceptPeer(tools, found)).rejects.toBeInstanceOf(Interrupted);
  expect((await waiting(simulated)).includes(2)).toBe(isUndone);
});
