import { isIP } from 'node:net';
import type { App } from './app.ts';
import { InvalidRequest } from './errors.ts';

/** Refuses what a trusted proxy brings without saying from whom: limits and audit would take a client's own words for an address. */
export function requireAddress(app: App): void {
  app.addHook('onRequest', async ({ ip }) => {
    if (isIP(ip) === 0) throw new InvalidRequest({ 'x-forwarded-for': ['must end in the IP address of the client'] });
  });
}
