import { isIP } from 'node:net';
import { parseAddress } from './cidr.ts';
import { unusableAddress } from './endpoint.ts';

/** True for a loopback address or `localhost`: only this machine can be there. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || (isIP(host) !== 0 && unusableAddress(parseAddress(host)) === 'loopback');
}
