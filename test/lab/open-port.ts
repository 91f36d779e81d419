import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import type { Host } from './host.ts';

/** A port of this machine that leads to a port of a host. Disposing closes it. */
export interface OpenPort extends Disposable {
  readonly port: number;
}

/** Runs on the host. A socket file leads there and nowhere else: no packet passes between the lab and this machine. */
const inside = `
import { connect, createServer } from 'node:net';
import { pipeline } from 'node:stream';
const [path, port, address] = process.argv.slice(1);
const server = createServer((client) => pipeline(client, connect(port, address), client, () => {}));
server.listen(path, () => console.log('ready'));
`;

/** Makes a port of a host reachable for programs on this machine: on 127.0.0.1 alone, at a free port. */
export async function openPort(host: Host, port: number): Promise<OpenPort> {
  const path = join(host.folder, `port-${port}`);
  const ready = host.spawn(['node', '--input-type=module', '-e', inside, path, `${port}`, host.address]);
  await ready.waitForLine(/^ready$/);
  const server = createServer((client) => pipeline(client, connect(path), client, () => {}));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { port: (server.address() as AddressInfo).port, [Symbol.dispose]: () => void server.close() };
}
