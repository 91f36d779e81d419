import type { Actual } from '../host-state/actual.ts';
import type { Address } from '../net/cidr.ts';
import type { Firewall } from './packet-rule.ts';

/**
 * A tunnel address that neighbours of the host reach, because the host cannot load packet rules.
 */
export interface OpenAddress {
  readonly found: string;
  readonly remedy: string;
}

/**
 * Reports that neighbours reach the tunnel address; null if packet rules prevent that, or are to be
 * loaded.
 */
export function findOpenAddress(
  at: Address,
  { link, firewall }: { readonly link: string; readonly firewall: Firewall | null },
  { isPlain = false }: Pick<Actual, 'isPlain'>,
): OpenAddress | null {
  if (firewall !== null) return null;
  const open = `hosts next to this one reach its tunnel address ${at} without the tunnel`;
  if (isPlain) {
    const remedy = `in the firewall of this host, drop what other interfaces than ${link} bring for ${at}`;
    return { found: `${open}: cpn has no packet rules on this kind of host`, remedy };
  }
  const remedy = `install nft (package nftables), with a kernel that has nf_tables, and type: cpn reconcile ${link}`;
  return { found: `${open}: nft is missing here, or cannot work`, remedy };
}
