import { InvalidValue } from '../../core/errors/index.ts';
import { isSocketAddress, parseSocketAddress } from '../../core/net/socket-path.ts';

/** An address to listen on. Port 0 selects any free port. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** Also accepts `unix:PATH`, which sets `socketPath`; host and port then only mark it as local. */
export function parseListenAddressOrSocket(
  name: string,
  text: string,
): ListenAddress & { readonly socketPath: string | null } {
  if (!isSocketAddress(text)) return { ...parseListenAddress(name, text), socketPath: null };
  return { host: 'localhost', port: 0, socketPath: parseSocketAddress(name, text) };
}

/** Parses `HOST:PORT`, with an IPv6 address in brackets. @param name the name in messages */
export function parseListenAddress(name: string, text: string): ListenAddress {
  const [, bracketed, plain, port] = /^(?:\[([0-9a-fA-F:]+)\]|([^:[\]]+)):(0|[1-9][0-9]{0,4})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || Number(port) > 65535) {
    throw new InvalidValue(name, text, 'is not an address to listen on', 'write HOST:PORT, like 127.0.0.1:8787');
  }
  return { host, port: Number(port) };
}
