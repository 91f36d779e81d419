import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import tls from 'node:tls';
import { onTestFinished } from 'vitest';

/** A request as the server got it. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** What the server does with one request, once it has read all of it. */
export type Reply = (response: ServerResponse, asked: Asked) => void;

/**
 * A real HTTP server on loopback that gives each request the next of these replies, and the last one over and over.
 * It stops when the test ends.
 */
export async function serve(...replies: Reply[]) {
  const asked: Asked[] = [];
  const { url } = await listen(
    createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const { method = '', url: path = '', headers } = request;
      const one = { method, path, headers, body: Buffer.concat(chunks).toString() };
      asked.push(one);
      (replies[asked.length - 1] ?? replies.at(-1))?.(response, one);
    }),
  );
  return { url, asked, address: { url, insecureHttp: false } };
}

/** Starts any server on a free loopback port, and stops it with all its connections when the test ends. */
export async function listen(server: Server) {
  const sockets = new Set<{ destroy(): void }>();
  server.on('connection', (socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}`, connections: () => sockets.size };
}

/** Trusts these certificates too until the test ends. */
export function trust(...certificates: string[]): void {
  const usual = tls.getCACertificates('default');
  tls.setDefaultCACertificates([...usual, ...certificates]);
  onTestFinished(() => tls.setDefaultCACertificates(usual));
}

/** A reply without content. */
export const empty: Reply = (response) => {
  response.writeHead(204).end();
};

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Reply {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  };
}

export function bytes(status: number, body: string | Buffer, headers: Record<string, string> = {}): Reply {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
  };
}

/** Promises more than it sends, then drops the connection: the request was carried out, its reply is lost. */
export const brokenOff: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
  response.write('{"data": {', () => response.destroy());
};

/** Drops the connection without a byte. */
export const hungUp: Reply = (response) => {
  response.destroy();
};

/** Takes the request and never answers. */
export const silent: Reply = () => {};

/** Begins a body, and goes on a byte every few milliseconds, for ever. */
export function slowLoris(status: number): Reply {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).write('{"data": "');
    const timer = setInterval(() => response.write('a'), 5);
    response.on('close', () => clearInterval(timer));
  };
}
