import { domainToASCII } from 'node:url';
import { InvalidValue } from '../errors/index.ts';

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

/**
 * Parses a DNS domain, and returns it in lower case without a trailing dot. A name in Unicode
 * becomes its A-labels: `bücher.example` is `xn--bcher-kva.example`.
 *
 * @throws InvalidValue
 */
export function parseDomain(text: string, field = 'domain'): string {
  const lower = text.toLowerCase();
  const isUnicode = /[^\0-\x7f]/.test(lower) && unicodePattern.test(lower);
  const domain = (isUnicode ? domainToASCII(lower) : lower).replace(/\.$/, '');
  const tail = specialTails.find((each) => domain === each || domain.endsWith(`.${each}`));
  if (tail !== undefined) {
    throw new InvalidValue(field, text, `ends in "${tail}", which is reserved`, 'give a domain of the DNS');
  }
  if (domain.length <= longestDomain && domainPattern.test(domain)) return domain;
  const rule =
    'is no domain: labels of 1 to 63 letters, digits, "-" and "_", which neither begin nor end with "-" or "_", up to 253 characters in all';
  if (/^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/.test(domain)) {
    throw new InvalidValue(field, text, 'has one label', 'give a domain of two labels or more, such as corp.example');
  }
  throw new InvalidValue(field, text, rule, 'write it like corp.example');
}
