import type { Server as HttpServer, ServerResponse } from 'node:http';
import { Server, type Socket } from 'node:net';

export class ConnectionTracker {
  readonly #servers: HttpServer[] = [];
  // Node considers a connection without a first request busy, and would wait for it. A TLS request
  // has another socket than its connection, but the same address and port.
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
   * Refuses new connections, drops unused ones, and resolves when no reply is unfinished. Only then
   * may a server close: Node drops a connection whose written reply the client has not read yet.
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
