import { InvalidValue } from '../../core/errors/index.ts';

/** An address to listen on; port 0 takes any free one. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** Parses `HOST:PORT`, with an IPv6 address in brackets; port 0 takes any free one. @param name the name in messages */
export function parseListenAddress(name: string, text: string): ListenAddress {
  const [, bracketed, plain, port] = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]]+)):(0|[1-9][0-9]{0,4})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || Number(port) > 65535) {
    throw new InvalidValue(name, text, 'is not an address to listen on', 'write HOST:PORT, like 127.0.0.1:8787');
  }
  return { host, port: Number(port) };
}
