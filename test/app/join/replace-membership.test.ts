import { expect, it } from 'vitest';
import type { JoinRequest } from '../../../src/app/join/join-request.ts';
import { replaceMembership } from '../../../src/app/join/rejoin.ts';
import { makeIdentity } from '../../../src/core/crypto/identity.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { features } from '../../../src/core/map/features.ts';
import type { Joined, Rotation } from '../../../src/store/state/state.ts';
import { address, dialled, keyPair, options, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const two = peer(2, { endpoint: dialled(2) });

/** The membership that a field of the state comes from after a rejoin; `both` is tested by itself. */
const origins: Readonly<Record<keyof Joined, 'former' | 'new' | 'both'>> = {
  // What is on the host under the interface's name, and what a person chose.
  ...{ interface: 'former', createdAt: 'former', networkSecret: 'former', options: 'former', drained: 'former' },
  ...{ labels: 'former', openPorts: 'former' },
  // What the enrolment decided, and what was observed as the former peer.
  ...{ keyPair: 'new', keySince: 'new', keySerial: 'new', identity: 'new', rotation: 'new', service: 'new' },
  ...{ features: 'new', perhapsEnrolled: 'new', enrollment: 'new', enabled: 'new', deletion: 'new' },
  ...{
    resolved: 'new',
    refused: 'new',
    refusedDns: 'new',
    label: 'new',
    failed: 'new',
    pathMtu: 'new',
    confirmed: 'new',
  },
  ...{ keptOutside: 'new', tunnelledResolvers: 'new' },
  ...{ membership: 'both', pins: 'both', receipt: 'both', ownsDns: 'both' },
};

const request: JoinRequest = {
  ...{ token: new Secret('cpn_new'), service: joinedTo(mapAt('"1"', [])).service, name: 'host', type: 'origin' },
  ...{ endpoint: null, interface: null, options, named: new Set(), networkSecret: null, personalToken: null },
  ...{ isUnattended: false, handshakeTimeoutMs: 0 },
};

/** A state of which each field has a value of its own. */
function fill(number: number): Required<Joined> {
  const map = mapAt(`"${number}"`, [two]);
  const at = `20${20 + number}-01-01T00:00:00.000Z`;
  const own = address(`10.77.0.${100 + number}`);
  const pair = keyPair(100 + number);
  const rotation: Rotation = {
    ...{ phase: 'announcing', keyPair: keyPair(50 + number), proof: null, wayBack: null, begunAt: at, witnesses: [] },
  };
  return {
    interface: `cpn${number}`,
    ...{ createdAt: at, keyPair: pair, keySince: at, keySerial: number, rotation, confirmed: number },
    identity: makeIdentity(new Uint8Array(32).fill(number)),
    networkSecret: new Secret(Buffer.alloc(32, number).toString('base64')),
    service: { url: `https://203.0.113.${number}`, insecureHttp: false },
    features: features.slice(number),
    perhapsEnrolled: number === 2,
    enrollment: { idempotencyKey: `${number}`, tokenHash: `${number}`, name: 'host', type: 'origin', endpoint: null },
    membership: {
      peer: { id: 100 + number, name: `host-${number}`, address: own },
      accessToken: new Secret(`cpp_${number}`),
      personalToken: null,
      map: { ...map, peers: [peer(100 + number, { publicKey: pair.publicKey, address: own }), two] },
      text: { dns: [], remarks: [`${number}`] },
    },
    options: { ...options, hosts: true, listenPort: 52_000 + number },
    enabled: number === 2,
    deletion: { at, resumes: true },
    resolved: { [`name-${number}`]: [own] },
    refused: `"${number}"`,
    label: `network-${number}`,
    ownsDns: true,
    refusedDns: { servers: [{ address: own, port: 53 }], domains: [`${number}.example`], lost: ['x.example'], at },
    failed: [{ peer: number, back: false }],
    pathMtu: { mtu: 1300 + number, peer: 2, underlay: 'x', measuredAt: at },
    drained: number === 1,
    openPorts: [{ by: 'ufw', port: 52_000 + number, zone: null, permanent: true }],
    pins: [{ peer: number, address: own, publicKey: pair.publicKey, identity: null, serial: 0, claimed: null }],
    labels: [{ peer: 2, labels: [`label-${number}`] }],
    keptOutside: [{ address: own, what: 'x' }],
    tunnelledResolvers: [{ address: own, route: prefix(`${own}/32`) }],
    receipt: [
      { made: 'interface', link: 'cpn1' },
      { made: 'folder', path: `/${number}` },
    ],
  };
}

it('a new membership in place of a former one has each field of the one that it belongs to', async () => {
  const { ownsDns: _, ...second } = fill(2);
  const [former, joined]: [Joined, Joined] = [fill(1), second];
  const simulated = await SimulatedHost.with(former);
  await simulated.tools.store.write(joined);
  const replaced = await replaceMembership(simulated.tools, joined, former, request);
  const keys = Object.keys(origins) as (keyof Joined)[];
  expect(new Set(Object.keys(replaced))).toEqual(new Set(keys));
  for (const key of keys.filter((each) => origins[each] !== 'both')) {
    const [from, other] = origins[key] === 'former' ? [former, joined] : [joined, former];
    expect(from[key], `${key} is the same in both`).not.toEqual(key === 'networkSecret' ? null : other[key]);
    expect(replaced[key], key).toEqual(from[key]);
  }
  expect(replaced.networkSecret?.reveal()).toBe(former.networkSecret?.reveal());
  expect(replaced.ownsDns).toBe(true);
  expect(replaced.receipt).toEqual([...former.receipt, { made: 'folder', path: '/2' }]);
  // A pin of the former membership holds for the peers of the new one.
  expect(replaced.pins.map((pin) => pin.peer)).toEqual([2, 1]);
  expect(replaced.membership).toEqual(joined.membership);
  const { states } = await simulated.tools.store.list();
  expect(states).toEqual([replaced]);
});
