import { expect, it } from 'vitest';
import { joinNetwork } from '../../../src/app/join/join.ts';
import type { JoinRequest } from '../../../src/app/join/join-request.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { dialled, keyPair, network, options, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const office = mapAt('"1"', [peer(2, { name: 'edge-1', endpoint: dialled(2) })], { name: 'office' });
const { service } = joinedTo(office);
const request: JoinRequest = {
  ...{ token: new Secret('cpn_new'), service, name: 'host', type: 'origin', endpoint: null },
  ...{ interface: null, options, named: new Set(), networkSecret: null, personalToken: null },
  ...{ isUnattended: false, handshakeTimeoutMs: 0 },
};

/** Joins a network with the range of `office` that gives this host the address of edge-1 there. */
async function joinAnother(deletion?: { at: string; resumes: boolean }) {
  const simulated = await SimulatedHost.with(joinedTo(office, deletion && { enabled: false, deletion }));
  const warnings: string[] = [];
  simulated.tools.warn = (text) => void warnings.push(text);
  const removals: string[] = [];
  simulated.service.onRemovePeer = (token) => removals.push(token.reveal()) > 0;
  simulated.service.onEnroll = ({ publicKey, name }) => {
    const own = peer(9, { publicKey, name, address: peer(2).address });
    const others = [peer(1, { publicKey: keyPair(11).publicKey })];
    const map = network([...others, own], { id: 8, name: 'office2', revision: '"1"' });
    simulated.service.mapReplies = [answerWith(map)];
    return { peer: own, map, accessToken: new Secret('cpp_new') };
  };
  const joining = joinNetwork(simulated.tools, request);
  return { joining, warnings, removals };
}

it('joins a network with the range of a deleted one, and warns of what hides a peer if that comes back', async () => {
  const { joining, warnings, removals } = await joinAnother({ at: '2026-01-01T00:00:00.000Z', resumes: true });
  expect((await joining).state.interface).toBe('cpn1');
  expect(removals).toEqual([]);
  expect(warnings).toContainEqual(
    `network office (cpn0) was deleted; if it comes back, its peer edge-1 is unreachable: its address ${peer(2).address} is assigned to this host; "cpn leave cpn0" removes its stored state`,
  );
});

it('is refused while the host is in a network that was not deleted', async () => {
  const { joining, removals } = await joinAnother();
  await expect(joining).rejects.toMatchObject({
    name: 'WrongUsage',
    message: expect.stringContaining('would hide it'),
  });
  expect(removals).toEqual(['cpp_new']);
});
