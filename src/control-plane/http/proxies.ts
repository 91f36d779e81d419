import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { InvalidRequest } from '../errors.ts';
import type { App } from './app.ts';

/** Refuses a request of a trusted proxy without a client address: limits and audit would use unverified text as the address. */
export function requireAddress(app: App): void {
  app.addHook('onRequest', async ({ ip }) => {
    if (isIP(ip) === 0) throw new InvalidRequest({ 'x-forwarded-for': ['must end in the IP address of the client'] });
  });
}

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
