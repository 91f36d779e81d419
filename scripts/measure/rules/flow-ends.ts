/**
 * One end of flows, inside a simulated host. `serve` echoes bytes over TCP and datagrams over UDP.
 * `send ADDRESS…` sends both and pings to each address, again and again. Its standard input has
 * orders: `open` begins new connections, `last` prints when the latest packet of each flow
 * arrived.
 */
import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { connect, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { FlowKind, LastArrivals } from './revocations.ts';

const port = 8085;
const everyMs = 10;

const [role, ...addresses] = process.argv.slice(2);
const last: Record<string, Partial<Record<FlowKind, number>>> = {};
const note = (address: string, kind: FlowKind) => {
  last[address] = { ...last[address], [kind]: Date.now() };
};
const orders: Record<string, () => void> = {
  last: () => process.stdout.write(`last ${JSON.stringify(last satisfies LastArrivals)}\n`),
};

if (role === 'serve') serve();
else for (const address of addresses) send(address);
createInterface({ input: process.stdin })
  .on('line', (line) => orders[line]?.())
  .on('close', () => process.exit());

function serve(): void {
  createServer({ noDelay: true }, (socket) => {
    socket
      .on('error', () => {})
      .on('data', (data) => {
        note('', 'tcp');
        socket.write(data);
      });
  }).listen(port, '0.0.0.0', () => process.stdout.write('ready\n'));
  const datagrams = createSocket('udp4');
  datagrams.on('message', (message, from) => {
    note('', 'udp');
    datagrams.send(message, from.port, from.address, () => {});
  });
  datagrams.bind(port);
}

function send(address: string): void {
  const datagrams = createSocket('udp4')
    .on('message', () => note(address, 'udp'))
    .on('error', () => {});
  setInterval(() => datagrams.send('x', port, address, () => {}), everyMs);
  const ping = spawn('ping', ['-n', '-i', `${everyMs / 1000}`, address], { stdio: ['ignore', 'pipe', 'ignore'] });
  createInterface({ input: ping.stdout }).on('line', (line) => {
    if (line.includes('bytes from')) note(address, 'ping');
  });
  const before = orders.open;
  let close = () => {};
  orders.open = () => {
    before?.();
    close();
    close = open(address);
  };
}

/** Sends over a connection, which is retried until it opens. Returns a function that ends it. */
function open(address: string): () => void {
  let socket: Socket;
  let isOver = false;
  const dial = () => {
    socket = connect({ port, host: address, noDelay: true });
    socket.on('data', () => note(address, 'tcp')).on('error', () => {});
    socket.on('close', () => !isOver && setTimeout(dial, 10 * everyMs));
  };
  dial();
  const timer = setInterval(() => {
    if (!socket.connecting) socket.write('x');
  }, everyMs);
  return () => {
    isOver = true;
    clearInterval(timer);
    socket.destroy();
  };
}
