import type { IncomingMessage } from 'node:http';

/** Writes the addresses of a request's X-Forwarded-For without ports and brackets, which some proxies add. */
export function readForwarded({ headers }: IncomingMessage): void {
  const given = headers['x-forwarded-for'];
  if (given === undefined) return;
  headers['x-forwarded-for'] = [given].flat().join(',').split(',').map(bareAddress).join(', ');
}

/** `203.0.113.7:4711` is an address with a port; of IPv6 that needs brackets, because all of `2001:db8::7:4711` may be one. */
function bareAddress(text: string): string {
  const [, inBrackets, ipv4] = /^(?:\[([0-9a-f:.]+)\](?::\d{1,5})?|([0-9.]+):\d{1,5})$/i.exec(text.trim()) ?? [];
  return inBrackets ?? ipv4 ?? text.trim();
}
