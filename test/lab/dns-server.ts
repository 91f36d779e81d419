/**
 * A DNS server for simulated hosts: `node dns-server.ts ADDRESS [PORT]` answers queries for A, AAAA and PTR records over UDP and TCP from
 * a table, which is empty until an order brings one; see dns.ts.
 *
 * @module
 */
import { createSocket } from 'node:dgram';
import { createServer, isIP } from 'node:net';
import type { Zone } from './dns.ts';
import { followOrders } from './orders.ts';

const [address, port = '53'] = process.argv.slice(2);
const types: Readonly<Record<number, { readonly name: string; readonly family: number }>> = {
  1: { name: 'A', family: 4 },
  12: { name: 'PTR', family: 0 },
  28: { name: 'AAAA', family: 6 },
};
const flags = { answer: 0x8180, noSuchName: 0x8183, refused: 0x8185 };
let zone: Zone = {};

const udp = createSocket('udp4');
udp.on('message', (query, asker) => {
  const reply = answer(query);
  if (reply !== undefined) udp.send(reply, asker.port, asker.address);
});

// A message over TCP follows its length (RFC 1035, 4.2.2).
const tcp = createServer((connection) => {
  let received = Buffer.alloc(0);
  connection.on('error', () => {});
  connection.on('data', (part) => {
    received = Buffer.concat([received, part]);
    while (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) {
      const end = 2 + received.readUInt16BE(0);
      const reply = answer(received.subarray(2, end));
      received = received.subarray(end);
      if (reply === undefined) continue;
      const length = Buffer.alloc(2);
      length.writeUInt16BE(reply.length, 0);
      connection.write(Buffer.concat([length, reply]));
    }
  });
});
udp.bind(Number(port), address, () => tcp.listen(Number(port), address, () => process.stdout.write('listening\n')));

void followOrders<Zone>((next) => {
  zone = next;
});

/** The reply to a query; none from a silent server. */
function answer(query: Buffer): Buffer | undefined {
  const { name, type, end } = readQuestion(query);
  process.stdout.write(`asked for ${name} (${types[type]?.name ?? `type ${type}`})\n`);
  if (zone === 'silent') return undefined;
  const values = zone === 'refusing' ? [] : zone[name];
  if (values?.includes('silent')) return undefined;
  const records = zone === 'refusing' ? [] : listRecords(zone, name, type);
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  const found = values === undefined ? flags.noSuchName : flags.answer;
  header.writeUInt16BE(zone === 'refusing' ? flags.refused : found, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(records.length, 6);
  return Buffer.concat([header, query.subarray(12, end), ...records]);
}

/** The records of a name, and of those that it leads to. */
function listRecords(records: Exclude<Zone, string>, name: string, type: number, left = 8): Buffer[] {
  return (records[name] ?? []).flatMap((text) => {
    const [value = '', ttl = '0'] = text.replace(/^-> /, '').split(' ');
    if (text.startsWith('-> '))
      return [record(name, 5, value, Number(ttl)), ...(left > 0 ? listRecords(records, value, type, left - 1) : [])];
    return isIP(value) === types[type]?.family ? [record(name, type, value, Number(ttl))] : [];
  });
}

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

/** RFC 1035, 4.1.3, and RFC 3596. */
function record(name: string, type: number, value: string, ttl: number): Buffer {
  const data = encode(type, value);
  const head = Buffer.from([0, type, 0, 1, 0, 0, 0, 0, 0, data.length]);
  head.writeUInt32BE(ttl, 4);
  return Buffer.concat([Buffer.from(encodeName(name)), head, Buffer.from(data)]);
}

function encode(type: number, value: string): number[] {
  if (type === 1) return value.split('.').map(Number);
  if (type === 28) return readIpv6(value);
  return encodeName(value);
}

function encodeName(name: string): number[] {
  return [...name.split('.').flatMap((label) => [label.length, ...Buffer.from(label, 'latin1')]), 0];
}

function readIpv6(address: string): number[] {
  const [before = [], after = []] = address.split('::').map((part) => part.split(':').filter(Boolean));
  const zeros = new Array<string>(8 - before.length - after.length).fill('0');
  return [...before, ...zeros, ...after].flatMap((group) => [
    Number.parseInt(group, 16) >> 8,
    Number.parseInt(group, 16) & 255,
  ]);
}
