import type { Peer, PeerType } from '../../../contract/peer.ts';
import { findOtherLabel, nameWithLabel } from '../../../core/names/label.ts';

type NamedPeer = Pick<Peer, 'id' | 'name' | 'dns_label'>;

/** The name of a peer, with its DNS label if that differs, like `cpn peer list`. */
export const nameOf = (peer: NamedPeer) => nameWithLabel(toNamed(peer));

/** The label if it differs from the name, else null. */
export const labelOf = (peer: NamedPeer) => findOtherLabel(toNamed(peer));

function toNamed({ id, name, dns_label }: NamedPeer) {
  return { id, name, ...(dns_label !== undefined && { label: dns_label }) };
}

/** The texts for peer types. */
export const peerTypes: Readonly<Record<PeerType, string>> = {
  origin: 'server',
  connector: 'connector',
  admin_device: 'laptop or phone',
};
