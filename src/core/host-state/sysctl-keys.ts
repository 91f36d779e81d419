/**
 * The key of a setting of one interface, as sysctl(8) writes it: with the dots of the name as
 * slashes. The kernel reads these settings of the interface by which packets arrive.
 */
function linkKey(link: string, setting: string): string {
  return `net.ipv4.conf.${link.replaceAll('.', '/')}.${setting}`;
}

/**
 * How strictly an interface checks that replies would use the path of arriving packets
 * (`rp_filter`, ip-sysctl.rst).
 */
export function sourceFilterKey(link: string): string {
  return linkKey(link, 'rp_filter');
}

/**
 * Whether the host forwards packets that arrive by an interface. The outgoing interface does not
 * matter (IN_DEV_FORWARD in ip_route_input_slow, net/ipv4/route.c).
 */
export function forwardingKey(link: string): string {
  return linkKey(link, 'forwarding');
}

/**
 * Writing another value sets the forwarding of every interface, including future ones
 * (inet_forward_change in net/ipv4/devinet.c).
 */
export const allForwardingKey = 'net.ipv4.ip_forward';

/** Exists if the kernel has IPv6, with any value. */
export const ipv6Key = 'net.ipv6.conf.all.disable_ipv6';

/** True for the forwarding of one interface or of all. */
export function isForwardingKey(key: string): boolean {
  return key === allForwardingKey || /^net\.ipv4\.conf\.[^.]+\.forwarding$/.test(key);
}

/** The minimum for every interface: the greater of the two values applies. */
export const commonFilterKey = 'net.ipv4.conf.all.rp_filter';

/**
 * True if packets are dropped at the interface that arrive by another path than replies would take.
 */
export function isStrict(key: string, sysctls: Readonly<Record<string, string>>): boolean {
  return Math.max(Number(sysctls[key] ?? 1), Number(sysctls[commonFilterKey] ?? 0)) === 1;
}

/**
 * Accepts any path to the source: peers behind two connectors send and receive by different paths.
 */
export const looseFilter = '2';

/**
 * Whether any interface may accept source routes, of packets with the IPv4 options LSRR and SSRR
 * (`accept_source_route`, ip-sysctl.rst).
 */
export const sourceRouteKey = 'net.ipv4.conf.all.accept_source_route';
