/**
 * The key of a setting of one interface, as sysctl(8) writes it: with the dots of the name as slashes. The kernel reads these
 * where packets come in.
 */
function linkKey(link: string, setting: string): string {
  return `net.ipv4.conf.${link.replaceAll('.', '/')}.${setting}`;
}

/**
 * How strictly an interface looks whether packets come from where it would send answers (`rp_filter`, ip-sysctl.rst).
 */
export function sourceFilterKey(link: string): string {
  return linkKey(link, 'rp_filter');
}

/**
 * Whether the host forwards what comes in by an interface; the interface that a packet leaves by has no say (IN_DEV_FORWARD in
 * ip_route_input_slow, net/ipv4/route.c).
 */
export function forwardingKey(link: string): string {
  return linkKey(link, 'forwarding');
}

/** Writing another value sets the forwarding of every interface, and of those to come (inet_forward_change in net/ipv4/devinet.c). */
export const allForwardingKey = 'net.ipv4.ip_forward';

/** There where the kernel has IPv6, whatever the value. */
export const ipv6Key = 'net.ipv6.conf.all.disable_ipv6';

/** True for the forwarding of one interface or of all. */
export function isForwardingKey(key: string): boolean {
  return key === allForwardingKey || /^net\.ipv4\.conf\.[^.]+\.forwarding$/.test(key);
}

/** What every interface is at least held to: the greater of the two counts. */
export const commonFilterKey = 'net.ipv4.conf.all.rp_filter';

/** True when packets that come by another way than answers would take are dropped at the interface. */
export function isStrict(key: string, sysctls: Readonly<Record<string, string>>): boolean {
  return Math.max(Number(sysctls[key] ?? 1), Number(sysctls[commonFilterKey] ?? 0)) === 1;
}

/** Any way to the source will do: peers that two connectors forward for come and go by different ways. */
export const looseFilter = '2';

/** Whether any interface may take source routes, of packets with the IPv4 options LSRR and SSRR (`accept_source_route`, ip-sysctl.rst). */
export const sourceRouteKey = 'net.ipv4.conf.all.accept_source_route';
