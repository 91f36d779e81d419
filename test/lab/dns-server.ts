/**
 * A DNS server for simulated hosts: `node dns-server.ts ADDRESS` answers queries for A and AAAA records over UDP from a table, which is
 * empty until an order brings one; see dns.ts.
 *
 * @module
 */
import { createSocket } from 'node:dgram';
import { isIP } from 'node:net';
import type { Zone } from './dns.ts';
import { followOrders } from './orders.ts';

const [address] = process.argv.slice(2);
const types: Readonly<Record<number, { readonly name: string; readonly family: number }>> = {
  1: { name: 'A', family: 4 },
  28: { name: 'AAAA', family: 6 },
};
const flags = { answer: 0x8180, noSuchName: 0x8183 };
let zone: Zone = {};

const socket = createSocket('udp4');
socket.on('message', (query, { address: asker, port }) => {
  const { name, type, end } = readQuestion(query);
  process.stdout.write(`asked for ${name} (${types[type]?.name ?? `type ${type}`})\n`);
  if (zone === 'silent') return;
  const addresses = zone[name];
  const records = (addresses ?? []).flatMap((text) => {
    const [address = '', ttl = '0'] = text.split(' ');
    return isIP(address) === types[type]?.family ? [record(type, address, Number(ttl))] : [];
  });
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(addresses === undefined ? flags.noSuchName : flags.answer, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(records.length, 6);
  socket.send(Buffer.concat([header, query.subarray(12, end), ...records]), port, asker);
});
socket.bind(53, address, () => process.stdout.write('listening\n'));

void followOrders<Zone>((next) => {
  zone = next;
});

/** The one question of a query (RFC 1035, 4.1.2): labels that each begin with their length, then type and class. */
function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

/** A record of the name in the question (RFC 1035, 4.1.3, and RFC 3596). */
function record(type: number, address: string, ttl: number): Buffer {
  const data = type === 1 ? address.split('.').map(Number) : readIpv6(address);
  const head = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, data.length]);
  head.writeUInt32BE(ttl, 6);
  return Buffer.concat([head, Buffer.from(data)]);
}

function readIpv6(address: string): number[] {
  const [before = [], after = []] = address.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = new Array<string>(8 - before.length - after.length).fill('0');
  return [...before, ...zeros, ...after].flatMap((group) => [
    Number.parseInt(group, 16) >> 8,
    Number.parseInt(group, 16) & 255,
  ]);
}
