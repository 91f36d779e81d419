import type { Server as HttpServer, ServerResponse } from 'node:http';
import { Server, type Socket } from 'node:net';

/** The connections of servers, and the replies that are under way on them. */
export class ConnectionTracker {
  readonly #servers: HttpServer[] = [];
  // Node takes a connection without a first request for a busy one, and would wait for it. A request on TLS has another
  // socket than the connection that it came by; both have the same address and port.
  readonly #unused = new Map<string, Socket>();
  readonly #replies = new Set<ServerResponse>();
  #ending = false;
  #onSent: () => void = () => {};

  track(server: HttpServer): void {
    this.#servers.push(server);
    server.on('connection', (socket: Socket) => {
      const name = nameOf(socket);
      if (this.#ending) socket.destroy();
      else this.#unused.set(name, socket);
      socket.once('close', () => {
        if (this.#unused.get(name) === socket) this.#unused.delete(name);
      });
    });
    server.on('request', ({ socket }, response) => {
      this.#unused.delete(nameOf(socket));
      this.#replies.add(response);
      // A reply closes when the kernel has its last byte, or when its connection is lost.
      response.once('close', () => {
        this.#replies.delete(response);
        if (this.#replies.size === 0) this.#onSent();
      });
    });
  }

  /**
   * Lets no new connection in, and drops those on which nothing was asked. Resolves when no reply is under way: only then may a server
   * close, because Node drops a connection whose reply is written, also when the client has not read it yet.
   */
  end(): Promise<void> {
    this.#ending = true;
    for (const server of this.#servers) Server.prototype.close.call(server);
    for (const socket of this.#unused.values()) socket.destroy();
    if (this.#replies.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onSent = resolve;
    });
  }
}

function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
