/** discard (RFC 863), where peers probe connectors: it is rarely open, and a reset proves as much as a connection. */
export const probedPort = 9;

/**
 * What a connector answers to a probe: `closed` where its map is out of date, and it relays and serves nothing. Linux reports the ICMP
 * error of that rule, "protocol unreachable", as ENOPROTOOPT, which has no other cause.
 */
export type ConnectorAnswer = 'open' | 'closed' | 'silent';
