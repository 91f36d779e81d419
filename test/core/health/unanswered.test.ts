import { expect, it } from 'vitest';
import { findUnanswered } from '../../../src/core/health/unanswered.ts';
import type { ActualPeer } from '../../../src/core/host-state/actual.ts';
import type { Prefix } from '../../../src/core/net/cidr.ts';
import { hostPrefix } from '../../../src/core/net/cidr.ts';
import { address, dialled, network, peer, prefix } from '../samples.ts';

const edge = peer(2, { type: 'connector', endpoint: dialled(2) });
const own = hostPrefix(edge.address);
const endpoint = { host: address('203.0.113.2'), port: 51820 };
const lan = prefix('192.168.50.0/24');
const handshake = 148;
const minute = 12 * handshake;

/** A connector that serves a LAN and has had a minute of handshakes from a host without an endpoint, unless changed. */
function entry(changes: Partial<ActualPeer>): ActualPeer {
  return {
    ...{ publicKey: edge.publicKey, presharedKey: null, endpoint, allowedIps: [own, lan], keepalive: 25 },
    ...{ latestHandshake: null, rxBytes: 0, txBytes: minute },
    ...changes,
  };
}

const find = (
  changes: Partial<ActualPeer>,
  { peers = [peer(1), edge], carried = [own, lan] as Prefix[], silent = {} },
) => [
  ...findUnanswered(network(peers), [{ publicKey: edge.publicKey, allowedIps: carried }], [entry(changes)], silent),
];
const noted = { [edge.publicKey]: 0 };

it.each([
  ['with keepalives, by the bytes sent', {}, {}],
  ['without keepalives, by what the daemon noted', { keepalive: null }, { silent: noted }],
  ['that carries the range alone', {}, { carried: [prefix('10.77.0.0/24')] }],
])('a serving connector that never answered is found: %s', (_, changes, facts) => {
  expect(find(changes, facts)).toEqual([edge.publicKey]);
});

it.each([
  ['has just been added', { txBytes: minute - handshake }, { silent: noted }],
  ['was sent nothing', { txBytes: 0, keepalive: null }, { silent: noted }],
  ['was sent something long ago, on a host without keepalives', { keepalive: null }, {}],
  ['has no endpoint, and is to dial this host', { endpoint: null }, { silent: noted }],
  ['has sent bytes since the daemon noted its silence', { keepalive: null, rxBytes: 148 }, { silent: noted }],
  ['answered once', { latestHandshake: 1 }, { silent: noted }],
  ['serves nothing here, such as a standby', {}, { carried: [own], silent: noted }],
  ['is no connector', {}, { peers: [peer(1), peer(2, { endpoint: dialled(2) })], silent: noted }],
])('a peer is not found that %s', (_, changes, facts) => {
  expect(find(changes, facts)).toEqual([]);
});
