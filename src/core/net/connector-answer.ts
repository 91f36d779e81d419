/**
 * discard (RFC 863), the port on which peers probe connectors. It is rarely open, and a reset
 * proves as much as a connection.
 */
export const probedPort = 9;

/**
 * The reply of a connector to a probe. `closed` means that its map is out of date, so it relays and
 * serves nothing. Linux reports the ICMP error of that rule, "protocol unreachable", as
 * ENOPROTOOPT, which has no other cause.
 */
export type ConnectorAnswer = 'open' | 'closed' | 'silent';
