import { createHash } from 'node:crypto';
import * as z from 'zod';
import { Network } from '../../contract/network.ts';
import type { Peer } from '../../contract/peer.ts';
import { reply } from '../../contract/reply.ts';
import type { StoredNetwork } from '../store/networks.ts';
import type { StoredPeer } from '../store/peers/peers.ts';
import type { MapText } from './map-cache.ts';
import { formatETag, toPeer } from './to-contract.ts';

const NetworkReply = reply(Network);

/**
 * The map of a peer that waits for approval: itself alone. The map has another ETag than every
 * revision of the network, so that the peer receives the whole map after the approval, and the same
 * ETag until its own contents change, so that it does not show changes of the network.
 */
export function createWaitingMap(network: StoredNetwork, peer: StoredPeer): MapText {
  const self = toWaitingPeer(network, peer);
  const { id, name, range } = network;
  const head = { id, name, description: '', private_cidr: range, routes: [], vpn_type: 'wireguard' as const };
  const content = JSON.stringify([id, name, range, self]);
  const nonce = createHash('sha256').update(content).digest('base64url').slice(0, nonceLength);
  const revision = { revision: 0, nonce };
  const data = { ...head, revision: 0, etag: formatETag(revision), peers: [self] };
  return { revision, base: null, bytes: Buffer.from(JSON.stringify(z.encode(NetworkReply, { data }))) };
}

/** A peer that waits for approval, as it reads itself. */
export function toWaitingPeer(network: StoredNetwork, peer: StoredPeer): Peer {
  const { suspended_at: _, ...self } = toPeer({ ...network, routes: [], route_dns: [] }, peer);
  return self;
}

/** As of the nonces of networks, whose revisions begin at 1. */
const nonceLength = 12;
