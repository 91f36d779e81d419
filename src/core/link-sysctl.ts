/**
 * How strictly an interface looks whether packets come from where it would send answers (`rp_filter`, ip-sysctl.rst), as
 * sysctl(8) writes it: with the dots of the name as slashes.
 */
export function sourceFilterKey(link: string): string {
  return `net.ipv4.conf.${link.replaceAll('.', '/')}.rp_filter`;
}

/** What every interface is at least held to: the greater of the two counts. */
export const commonFilterKey = 'net.ipv4.conf.all.rp_filter';

/** True when packets that come by another way than answers would take are dropped at the interface. */
export function isStrict(key: string, sysctls: Readonly<Record<string, string>>): boolean {
  return Math.max(Number(sysctls[key] ?? 1), Number(sysctls[commonFilterKey] ?? 0)) === 1;
}

/** Any way to the source will do: peers that two connectors forward for come and go by different ways. */
export const looseFilter = '2';

/** True for a key of one interface, which comes and goes with that interface. */
export function goesWithLink(key: string): boolean {
  return /^net\.ipv[46]\.conf\.(?!all\.|default\.)/.test(key);
}
