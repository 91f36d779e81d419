import { domainToASCII } from 'node:url';
import { InvalidValue } from '../errors/index.ts';
import { tryParseAddress } from '../net/cidr.ts';

/** The maximum characters of a name without its trailing dot (RFC 1035, 2.3.4). */
const longestDomain = 253;
/** Two labels or more. A last label of digits makes an address (WHATWG URL, 3.5). */
const domainPattern =
  /^(?:[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)+(?!\d+$|0x[0-9a-f]*$)[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?$/;
/** domainToASCII would decode "%", and end at "/". */
const unicodePattern = /^[a-z0-9._\-\u0080-\u{10ffff}]+$/u;
/**
 * Not names of the DNS of a LAN: RFC 6761 and 7686. Many Active Directory domains end in `local`,
 * which RFC 6762 reserves, and systemd-resolved sends those with two labels to a server (252).
 */
const specialTails: readonly string[] = ['localhost', 'invalid', 'onion', 'test'];

/** More than an address or a name, such as a URL. */
interface Mistake {
  readonly rule: string;
  /** The address or name in it. */
  readonly rest: string;
  readonly port: string | null;
}

/** Finds the address or name in a text that has more. Null for any other text. */
export function findMistake(text: string): Mistake | null {
  const [url, ipv6, host] = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?(?:\[([^\]]*)\]|([^/:?#]*))/i.exec(text) ?? [];
  if (url !== undefined) {
    const [, port = null] = /^:([0-9]+)/.exec(text.slice(url.length)) ?? [];
    return { rule: 'is a URL', rest: ipv6 ?? host ?? '', port };
  }
  const [, address, name, port] = /^(?:\[([^\]]*)\]|([^:[\]/]+)):([0-9]+)$/.exec(text) ?? [];
  if (port !== undefined) return { rule: 'has a port', rest: address ?? name ?? '', port };
  const [, rest] = /^\*\.(.+)$/.exec(text) ?? [];
  return rest === undefined ? null : { rule: 'is a wildcard', rest, port: null };
}

/** A name in Unicode as its A-labels. Any other text is unchanged. */
export function toAscii(text: string): string {
  const lower = text.toLowerCase();
  return /[^\0-\x7f]/.test(lower) && unicodePattern.test(lower) ? domainToASCII(lower) : text;
}

/**
 * Parses a DNS domain, and returns it in lower case without a trailing dot. A name in Unicode
 * becomes its A-labels: `bücher.example` is `xn--bcher-kva.example`.
 *
 * @throws InvalidValue
 */
export function parseDomain(text: string, field = 'domain'): string {
  const lower = text.toLowerCase();
  const domain = toAscii(lower).replace(/\.$/, '');
  const tail = specialTails.find((each) => domain === each || domain.endsWith(`.${each}`));
  if (tail !== undefined) {
    throw new InvalidValue(field, text, `ends in "${tail}", which is reserved`, 'give a domain of the DNS');
  }
  if (isDomain(domain)) return domain;
  const mistake = findMistake(lower);
  if (mistake !== null) {
    const { rule, rest } = mistake;
    const remedy = isDomain(toAscii(rest)) ? `write ${rest}, which includes all names below it` : example;
    throw new InvalidValue(field, text, rule, remedy);
  }
  if (tryParseAddress(lower) !== null) throw new InvalidValue(field, text, 'is an address', example);
  const rule =
    'is no domain: labels of 1 to 63 letters, digits, "-" and "_", which neither begin nor end with "-" or "_", up to 253 characters in all';
  if (/^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/.test(domain)) {
    throw new InvalidValue(field, text, 'has one label', 'give a domain of two labels or more, such as corp.example');
  }
  throw new InvalidValue(field, text, rule, example);
}

const example = 'write a domain such as corp.example';

function isDomain(text: string): boolean {
  return text.length <= longestDomain && domainPattern.test(text);
}
