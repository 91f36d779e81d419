import { createHash } from 'node:crypto';
import type { HostRequest } from './malicious-reply.ts';

type Fields = Record<string, unknown>;

/** A public key for each word. */
export const keyOf = (word: string): string => createHash('sha256').update(word).digest('base64');

/** The token that every host is given. */
export const peerToken = 'cpp_token-of-the-host';

/** The revision of the true map. */
export const trueRevision = '"12"';

/** The host itself in the true map. */
export const ownAddress = '10.77.0.5';
export const ownPeer = ({ self }: Pick<HostRequest, 'self'>): Fields => peer(5, { name: 'host', public_key: self });

/** A peer that can be dialled and serves the network's route. */
export const gate: Fields = peer(1, { name: 'gate', peer_type: 'connector', endpoint: '203.0.113.11:51820' });

/** A peer that cannot be dialled; most malicious replies change it. */
export const edge: Fields = peer(2, { name: 'edge' });

/** The true network, with changes to itself and to `edge`. */
export function network(request: Pick<HostRequest, 'self'>, changes: Fields = {}, ofEdge: Fields = {}): Fields {
  return {
    id: 7,
    name: 'office',
    description: '',
    private_cidr: '10.77.0.0/24',
    routes: ['192.168.50.0/24'],
    vpn_type: 'wireguard',
    revision: 12,
    peers: [ownPeer(request), gate, { ...edge, ...ofEdge }],
    ...changes,
  };
}

/** The true reply to an enrolment, with changes to it, to the network in it and to this host. */
export function enrolment(
  request: HostRequest,
  changes: Fields = {},
  ofNetwork: Fields = {},
  ofSelf: Fields = {},
): Fields {
  const self = { ...ownPeer(request), ...ofSelf };
  const peers = [self, gate, edge];
  return { peer: self, network: network(request, { peers, ...ofNetwork }), access_token: peerToken, ...changes };
}

function peer(id: number, changes: Fields): Fields {
  return {
    id,
    peer_type: 'origin',
    public_key: keyOf(`peer ${id}`),
    address: `10.77.0.${id}`,
    endpoint: null,
    created_at: '2026-01-01T00:00:00.000Z',
    ...changes,
  };
}
