/** sysctl(8) writes the name's dots as slashes. The kernel reads the arrival interface's keys. */
function linkKey(link: string, setting: string): string {
  return `net.ipv4.conf.${link.replaceAll('.', '/')}.${setting}`;
}

/** How strictly replies must use the path of arriving packets (`rp_filter`, ip-sysctl.rst). */
export function sourceFilterKey(link: string): string {
  return linkKey(link, 'rp_filter');
}

/**
 * Whether the host forwards packets that arrive by an interface, whichever interface they leave by
 * (IN_DEV_FORWARD in ip_route_input_slow, net/ipv4/route.c).
 */
export function forwardingKey(link: string): string {
  return linkKey(link, 'forwarding');
}

/** A new value sets every interface, future ones too (inet_forward_change, net/ipv4/devinet.c). */
export const allForwardingKey = 'net.ipv4.ip_forward';

/** Exists if the kernel has IPv6, with any value. */
export const ipv6Key = 'net.ipv6.conf.all.disable_ipv6';

/**
 * Whether an interface, or with `default` a new one, has no IPv6. The kernel removes the key with
 * the interface's IPv6, as with an MTU below 1280.
 */
export function disabledIpv6Key(link: string): string {
  return `net.ipv6.conf.${link.replaceAll('.', '/')}.disable_ipv6`;
}

/** True for the forwarding of one interface or of all. */
export function isForwardingKey(key: string): boolean {
  return key === allForwardingKey || /^net\.ipv4\.conf\.[^.]+\.forwarding$/.test(key);
}

/** The minimum for every interface: the greater of the two values applies. */
export const commonFilterKey = 'net.ipv4.conf.all.rp_filter';

/** True if packets that arrive by another path than replies would take are dropped. */
export function isStrict(key: string, sysctls: Readonly<Record<string, string>>): boolean {
  return Math.max(Number(sysctls[key] ?? 1), Number(sysctls[commonFilterKey] ?? 0)) === 1;
}

/** Accepts any path: peers behind two connectors send and receive by different paths. */
export const looseFilter = '2';

/** Whether source routes (LSRR, SSRR) may be accepted (`accept_source_route`, ip-sysctl.rst). */
export const sourceRouteKey = 'net.ipv4.conf.all.accept_source_route';
