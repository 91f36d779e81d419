import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';

/** The port of {@link listen}. */
const port = 8080;

/** Sends each client the address that it has here; reads what it sends, to its end; and sends as many bytes as it requested. */
const server = `
require('net').createServer({ allowHalfOpen: true }, (socket) => {
  let asked = '';
  socket.on('error', () => {});
  socket.on('data', (data) => { if (asked.length < 9) asked += data.toString('latin1').slice(0, 9); });
  socket.on('end', () => {
    socket.write(socket.remoteAddress + '\\n');
    socket.end(Buffer.alloc(Number(asked.trim()) || 0));
  });
}).listen(${port}, '0.0.0.0', () => console.log('listening'));
`;

/** Sends as many bytes as it requests; prints the address that the server saw, and how many bytes came. */
const client = `
const [host, bytes] = process.argv.slice(1);
const socket = require('net').connect(${port}, host, () => socket.end(bytes.padEnd(9) + 'x'.repeat(Number(bytes))));
const parts = [];
socket.on('data', (data) => parts.push(data));
socket.on('error', (error) => { console.log(error.code); process.exit(1); });
socket.on('end', () => {
  const [seen] = Buffer.concat(parts).toString('latin1').split('\\n');
  console.log(seen, Buffer.concat(parts).length - seen.length - 1);
});
`;

/** Starts a TCP server on a host. */
export async function listen(host: Host): Promise<void> {
  await host.spawn(['node', '-e', server], { holdInput: true }).waitForLine(/listening/);
}

/** Calls a server until it answers, sends as many bytes as it receives, and returns the client's address as the server sees it. */
export function call(from: Host, address: string, bytes = 0): Promise<string> {
  return eventually(
    `${from.name} reaches ${address}`,
    async () => {
      const argv = ['timeout', '6', 'node', '-e', client, address, String(bytes)];
      const { stdout } = await from.exec(argv, { allowFailure: true });
      const [seen, got] = stdout.trim().split(' ');
      return got === String(bytes) && seen;
    },
    { timeoutMs: 60_000 },
  );
}
