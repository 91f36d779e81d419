import { InvalidValue } from '../errors/index.ts';
import { type Endpoint, formatEndpoint, parseEndpoint } from '../net/endpoint.ts';

/**
 * Parses an endpoint as wg does (`parse_endpoint` in config.c): the host may be in brackets; a port
 * or service name follows the last colon. Converts names in any language for resolvers (IDNA).
 */
export function parseProvidedEndpoint(text: string): Endpoint {
  const isBracketed = text.startsWith('[');
  const at = isBracketed ? text.indexOf(']:') + 1 : text.lastIndexOf(':');
  if (at < 1) throw wrong('is not an endpoint');
  const host = isBracketed ? text.slice(1, at - 1) : text.slice(0, at);
  if (host.includes('%'))
    throw wrong('has a zone, which names an interface of one host and is not taken from a service');
  // Formatted again with brackets for IPv6, because parseEndpoint has the rules.
  return parseEndpoint(formatEndpoint({ host: spellInAscii(host), port: readPort(text.slice(at + 1)) }));
}

/** Digits, or a UDP service of /etc/services. A port above 65535, which wraps in wg, is refused. */
function readPort(text: string): number {
  const named = servicePorts.find(([name]) => name === text);
  if (named !== undefined) return named[1];
  if (!/^[0-9]{1,10}$/.test(text)) throw wrong('has a port that is neither a number nor a known service');
  return Number(text);
}

/** UDP ports on which tunnels listen, by service name (IANA's registry; services(5)). */
export const servicePorts: readonly (readonly [string, number])[] = [
  ['domain', 53],
  ['bootps', 67],
  ['tftp', 69],
  ['kerberos', 88],
  ['ntp', 123],
  ['snmp', 161],
  ['https', 443],
  ['isakmp', 500],
  ['syslog', 514],
  ['openvpn', 1194],
  ['l2tp', 1701],
  ['radius', 1812],
  ['radius-acct', 1813],
  ['ipsec-nat-t', 4500],
  ['sip', 5060],
  ['sip-tls', 5061],
];

function spellInAscii(name: string): string {
  const isForeign = /^[\p{L}\p{M}\p{N}._-]+$/u.test(name) && !/^[\x20-\x7e]*$/.test(name);
  return isForeign ? (URL.parse(`http://${name}`)?.hostname ?? name) : name;
}

function wrong(rule: string): InvalidValue {
  return new InvalidValue('Endpoint', undefined, rule);
}
