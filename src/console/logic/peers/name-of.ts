import type { Peer } from '../../../contract/peer.ts';
import { findOtherLabel, nameWithLabel } from '../../../core/names/label.ts';

type NamedPeer = Pick<Peer, 'id' | 'name' | 'dns_label'>;

/** The name of a peer, with the label by which hosts resolve it where that is another one, as `cpn peer list` has it. */
export const nameOf = (peer: NamedPeer) => nameWithLabel(toNamed(peer));

/** That label alone; null where it is the name. */
export const labelOf = (peer: NamedPeer) => findOtherLabel(toNamed(peer));

function toNamed({ id, name, dns_label }: NamedPeer) {
  return { id, name, ...(dns_label !== undefined && { label: dns_label }) };
}
