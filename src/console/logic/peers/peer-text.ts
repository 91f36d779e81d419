import type { Peer, PeerType } from '../../../contract/peer.ts';
import { findOtherLabel, nameWithLabel, toLabel } from '../../../core/names/label.ts';

type NamedPeer = Pick<Peer, 'id' | 'name' | 'dns_label'>;

/** The name of a peer, with its DNS label if that differs, like `cpn peer list`. */
export const nameOf = (peer: NamedPeer) => nameWithLabel(toNamed(peer));

/** The label if it differs from the name, else null. */
export const labelOf = (peer: NamedPeer) => findOtherLabel(toNamed(peer));

/**
 * The DNS name of a peer on hosts. The label of the network is another one on a host that has two
 * networks with one name, and stays if the network is renamed.
 */
export function dnsNameOf(peer: NamedPeer, network: { readonly id: number; readonly name: string }): string {
  const label = peer.dns_label ?? (toLabel(peer.name) || `peer-${peer.id}`);
  return `${label}.${toLabel(network.name) || `network-${network.id}`}.cpn.internal`;
}

function toNamed({ id, name, dns_label }: NamedPeer) {
  return { id, name, ...(dns_label !== undefined && { label: dns_label }) };
}

export const peerTypes: Readonly<Record<PeerType, string>> = {
  origin: 'server',
  connector: 'connector',
  admin_device: 'laptop or phone',
};

/** Peers that contain each word in name, label, address, endpoint, key, type, routes or tags. */
export function searchPeers(peers: readonly Peer[], query: string): readonly Peer[] {
  const words = foldText(query).split(/\s+/).filter(Boolean);
  if (words.length === 0) return peers;
  return peers.filter((peer) => {
    const text = textOf(peer);
    return words.every((word) => text.includes(word));
  });
}

function textOf(peer: Peer): string {
  const { address, endpoint, public_key, peer_type, routes = [], tags = [], suspended_at, awaiting_approval } = peer;
  const state = awaiting_approval !== undefined ? 'waiting' : suspended_at === undefined ? '' : 'suspended';
  return foldText(
    [nameOf(peer), address, endpoint, public_key, peerTypes[peer_type], ...routes, ...tags, state].join(' '),
  );
}

/** Letters that do not decompose into a base letter and a mark. */
const letters: Readonly<Record<string, string>> = {
  ...{ ø: 'o', ł: 'l', đ: 'd', ð: 'd', þ: 'th', ß: 'ss', æ: 'ae', œ: 'oe', ı: 'i', ħ: 'h', ŋ: 'ng' },
};

/** Removes case and marks, so that `zoe` finds `Zoë`. */
export function foldText(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[øłđðþßæœıħŋ]/g, (letter) => letters[letter] ?? letter);
}
