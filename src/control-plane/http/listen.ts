import { CannotListen } from '../errors.ts';
import type { App } from './app.ts';
import type { Transport } from './transport.ts';
import { removeStaleSocket } from './unix-socket.ts';

/** All connectors of a network reconnect at once after a change. Node's default backlog is 511. */
const backlog = 4096;

export interface ListenOptions {
  readonly host: string;
  /** 0 selects any free port. */
  readonly port: number;
  /** The path of a Unix socket to listen on instead of a TCP port. */
  readonly socketPath?: string | null;
}

/** Listens at the address, or at the Unix socket, and returns the URL. @throws CannotListen */
export async function listen(
  app: App,
  transport: Transport,
  { host, port, socketPath = null }: ListenOptions,
): Promise<string> {
  const common = { backlog, listenTextResolver: () => 'listening' };
  if (socketPath !== null) {
    const failed = (error: unknown) => new CannotListen(`unix:${socketPath}`, null, error);
    await removeStaleSocket(socketPath).catch((error) => Promise.reject(failed(error)));
    // The mode of its folder controls who connects. Requests need a token, as on a loopback port.
    const open = { path: socketPath, readableAll: true, writableAll: true };
    await app.listen({ ...common, ...open }).catch((error) => Promise.reject(failed(error)));
    return `unix:${socketPath}`;
  }
  const url = await app.listen({ ...common, host, port }).catch((error) => {
    throw new CannotListen(host, port, error);
  });
  return url.replace(/^http:/, `${transport.scheme}:`);
}
