import { describe, expect, it } from 'vitest';
import type { Enrolled, EnrollmentRequest } from '../../../src/api/service.ts';
import { joinNetwork } from '../../../src/app/join/join.ts';
import type { JoinRequest } from '../../../src/app/join/join-request.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Refused } from '../../../src/core/errors/index.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import type { State } from '../../../src/store/state/state.ts';
import { dialled, keyPair, network, options, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt, self } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
const service = { url: 'http://203.0.113.98', insecureHttp: true };
const request: JoinRequest = {
  ...{ token: new Secret('cpn_new'), service, name: 'host', type: 'origin', endpoint: null },
  ...{ interface: null, options, named: new Set(), networkSecret: null, personalToken: null },
  ...{ isUnattended: false, handshakeTimeoutMs: 0 },
};

/** The folders that a join made are handed over to the network that stays. */
const withoutFolders = (state: State) => ({ ...state, receipt: state.receipt.filter(({ made }) => made !== 'folder') });

/** A host that is up in a network of another address. */
async function startDesk() {
  const simulated = await SimulatedHost.with(joinedTo(map));
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  simulated.service.mapReplies = [answerWith(map)];
  const asked: EnrollmentRequest[] = [];
  const removed: string[] = [];
  simulated.service.onRemovePeer = (token) =>
    removed.push(`${simulated.service.knownService?.service.url} ${token.reveal()}`) > 0;
  const states = async () => (await simulated.tools.store.list()).states.map(withoutFolders);
  return { simulated, asked, removed, states, before: await states() };
}

/** An enrolment into a network that looks so. */
function reply({ publicKey, name }: EnrollmentRequest, into: NetworkMap, address: string): Enrolled {
  const own = peer(9, { publicKey, name, address: peer(9).address, ...(address && { address: address as never }) });
  return { peer: own, map: { ...into, peers: [...into.peers, own] }, accessToken: new Secret('cpp_new') };
}

const remedy =
  /^http:.*98 lists this host .* already \(as cpn0, joined at https:.*99\); if .* moved there, "cpn set cpn0 --api http:\/\/203\.0\.113\.98" .* sends it this host's token, and over plain http the token goes in clear text$/;

describe('a join into a network that this host joined at another address of its control plane', () => {
  it('is refused before it uses the key, and the token of that network is not sent', async () => {
    const { simulated, asked, removed, states, before } = await startDesk();
    simulated.service.onEnroll = (enrolment) => {
      asked.push(enrolment);
      throw new Refused(412, 'the enrolment', 'it lists this host', null);
    };
    await expect(joinNetwork(simulated.tools, request)).rejects.toMatchObject({
      name: 'WrongUsage',
      message: expect.stringMatching(remedy),
    });
    expect(asked.map(({ currentPeers }) => currentPeers)).toEqual([
      [{ publicKey: self.publicKey, address: self.address }],
    ]);
    expect([simulated.service.mapRequests, removed]).toEqual([[], []]);
    expect(await states()).toEqual(before);
  });

  it('is undone where only the map shows it', async () => {
    const { simulated, asked, removed, states, before } = await startDesk();
    simulated.service.onDescribe = async () => ({ features: ['enroll-idempotently', 'peer-removal'], etag: null });
    simulated.service.onEnroll = (enrolment) => {
      asked.push(enrolment);
      return reply(enrolment, map, '');
    };
    await expect(joinNetwork(simulated.tools, request)).rejects.toMatchObject({
      message: expect.stringMatching(remedy),
    });
    expect(asked.map(({ currentPeers }) => currentPeers)).toEqual([[]]);
    expect([simulated.service.mapRequests, removed]).toEqual([[], [`${service.url} cpp_new`]]);
    expect(await states()).toEqual(before);
  });

  it('succeeds where only the network id and the peer ids are the same', async () => {
    const { simulated, states } = await startDesk();
    const strangers = [peer(1, { publicKey: keyPair(11).publicKey, address: '10.88.0.1' as never })];
    const other = network(strangers, { cidr: prefix('10.88.0.0/24'), revision: '"1"' });
    simulated.service.onEnroll = (enrolment) => reply(enrolment, other, '10.88.0.9');
    const { state } = await joinNetwork(simulated.tools, request);
    expect(state.interface).toBe('cpn1');
    expect(await states()).toHaveLength(2);
  });
});
