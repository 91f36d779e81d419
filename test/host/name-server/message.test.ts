import { decode } from 'dns-packet';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Answer, answer, buildZones, indexZones } from '../../../src/core/names/zone.ts';
import { replyTo } from '../../../src/host/name-server/message.ts';
import { address, prefix } from '../../core/samples.ts';
import { dataOf, edns, messageOf, queryOf, rcodeOf } from './clients.ts';

const longest = 'n'.repeat(63);
const zones = indexZones(
  ['office', longest].flatMap((label) =>
    buildZones({
      label,
      range: prefix('10.77.0.0/24'),
      hosts: [{ address: address('10.77.0.1'), labels: ['db', longest] }],
    }),
  ),
);
const reply = (message: Buffer, transport: 'tcp' | 'udp' = 'udp') =>
  replyTo(message, (question) => answer(zones, question), transport);
const db = 'db.office.cpn.internal';

/** An answer with this many addresses of a name. */
const many =
  (count: number) =>
  ({ name }: { name: string }): Answer => ({
    rcode: 'NOERROR',
    answers: Array.from({ length: count }, (_, at) => ({ type: 'A', name, ttl: 5, data: `10.77.0.${at % 256}` })),
    authorities: [],
  });

/** The question of a name of these labels. */
function question(labels: readonly (string | Buffer)[], type = 1, klass = 1): Buffer {
  const parts = labels.map((label) => Buffer.from(label as string)).map((each) => [Buffer.of(each.length), each]);
  return Buffer.concat([...parts.flat(), Buffer.of(0, type >> 8, type & 255, klass >> 8, klass & 255)]);
}

describe('a reply', () => {
  it('has the id, the question and the flags of a query', () => {
    const replied = decode(reply(queryOf('DB.office.CPN.internal', 'A', { id: 4711 })) ?? Buffer.alloc(0));
    expect(replied).toMatchObject({ id: 4711, type: 'response', rcode: 'NOERROR', flag_aa: true, flag_rd: true });
    expect(replied).toMatchObject({ flag_tc: false, flag_ra: false, flag_ad: false });
    expect(replied.questions).toEqual([{ name: 'DB.office.CPN.internal', type: 'A', class: 'IN' }]);
    expect(replied.answers).toMatchObject([{ name: 'DB.office.CPN.internal', type: 'A', ttl: 5, data: '10.77.0.1' }]);
    expect(decode(reply(queryOf(db, 'A', { flags: 0 })) ?? Buffer.alloc(0))).toMatchObject({ flag_rd: false });
  });

  it('is authoritative in the zones alone', () => {
    const nxdomain = decode(reply(queryOf('x.office.cpn.internal')) ?? Buffer.alloc(0));
    expect(nxdomain).toMatchObject({ rcode: 'NXDOMAIN', flag_aa: true });
    expect(nxdomain.authorities).toMatchObject([
      { type: 'SOA', name: 'office.cpn.internal', data: { mname: 'office.cpn.internal', rname: '.', minimum: 5 } },
    ]);
    expect(decode(reply(queryOf('example.com')) ?? Buffer.alloc(0))).toMatchObject({
      rcode: 'REFUSED',
      flag_aa: false,
    });
  });

  it('has an OPT record if the query has one', () => {
    expect(decode(reply(queryOf(db)) ?? Buffer.alloc(0)).additionals).toEqual([]);
    const replied = decode(
      reply(queryOf(db, 'A', { additionals: [edns(4096, { flags: 0x8000 })] })) ?? Buffer.alloc(0),
    );
    expect(replied.additionals).toMatchObject([{ type: 'OPT', udpPayloadSize: 1232, flag_do: true, ednsVersion: 0 }]);
  });

  it('to a later version of EDNS is BADVERS', () => {
    const replied = decode(
      reply(queryOf(db, 'A', { additionals: [edns(1232, { ednsVersion: 1 })] })) ?? Buffer.alloc(0),
    );
    expect(replied).toMatchObject({
      rcode: 'NOERROR',
      answers: [],
      additionals: [{ extendedRcode: 1, ednsVersion: 0 }],
    });
  });

  it.each([
    ['without EDNS', 512, null],
    ['with 0 bytes', 512, 0],
    ['with 600 bytes', 600, 600],
    ['with 65,535 bytes', 1232, 65_535],
  ])('over UDP to a client %s is at most %s bytes', (_, most, size) => {
    const asked = queryOf(db, 'A', size === null ? {} : { additionals: [edns(4096)] });
    // dns-packet sends 4096 in place of 0.
    if (size !== null) asked.writeUInt16BE(size, asked.length - 8);
    const sizes = Array.from({ length: 40 }, (_, count) => replyTo(asked, many(count), 'udp') ?? Buffer.alloc(0));
    const whole = sizes.filter((each) => !decode(each).flag_tc);
    const cut = sizes.filter((each) => decode(each).flag_tc);
    const record = 38;
    expect(Math.max(...whole.map(({ length }) => length))).toBeLessThanOrEqual(most);
    expect(Math.max(...whole.map(({ length }) => length))).toBeGreaterThan(most - record);
    for (const each of cut) {
      expect(each.length).toBeLessThanOrEqual(asked.length);
      expect(decode(each)).toMatchObject({ answers: [], authorities: [], rcode: 'NOERROR' });
    }
    expect(cut.length).toBeGreaterThan(0);
    expect(decode(replyTo(asked, many(40), 'tcp') ?? Buffer.alloc(0)).answers).toHaveLength(40);
  });

  it('over TCP has at most 65,535 bytes', () => {
    expect(decode(replyTo(queryOf(db), many(3000), 'tcp') ?? Buffer.alloc(0))).toMatchObject({ flag_tc: true });
  });

  it('fits 512 bytes for the longest names', () => {
    const zone = `${longest}.cpn.internal`;
    const deep = `${'x.'.repeat(87)}yy.${zone}`;
    expect(deep).toHaveLength(253);
    const options = { additionals: [edns(512)] };
    for (const name of [`${longest}.${zone}`, deep, zone, '1.0.77.10.in-addr.arpa']) {
      for (const type of ['A', 'PTR', 'SOA', 'TXT', 'ANY']) {
        expect(decode(reply(queryOf(name, type, options)) ?? Buffer.alloc(0)).flag_tc).toBe(false);
      }
    }
  });

  it('to an answer that throws is SERVFAIL', () => {
    const fail = () => {
      throw new Error('a bug');
    };
    const unsendable = (): Answer => ({
      rcode: 'NOERROR',
      answers: [{ type: 'A', name: db, ttl: 5, data: undefined as never }],
      authorities: [],
    });
    for (const each of [fail, unsendable]) {
      expect(rcodeOf(replyTo(queryOf(db), each, 'udp') ?? Buffer.alloc(0))).toBe(2);
    }
  });

  it('to another class is REFUSED, with the class as it was', () => {
    for (const klass of [3, 5, 254, 255, 0, 65_535]) {
      const asked = messageOf([1], question(['db', 'office', 'cpn', 'internal'], 1, klass));
      const replied = reply(asked) ?? Buffer.alloc(0);
      expect(rcodeOf(replied)).toBe(5);
      expect(replied.subarray(12)).toEqual(asked.subarray(12));
    }
  });

  it('to a type that no standard has repeats it', () => {
    for (const type of [0, 41, 250, 254, 65_280, 65_535]) {
      const asked = messageOf([1], question(['db', 'office', 'cpn', 'internal'], type));
      const replied = reply(asked) ?? Buffer.alloc(0);
      expect(rcodeOf(replied)).toBe(0);
      expect(replied.subarray(12, asked.length)).toEqual(asked.subarray(12));
    }
  });

  it('is a header for another operation, or counts that no query has', () => {
    for (const opcode of [1, 2, 4, 5, 6, 15]) {
      const replied = reply(messageOf([1], question(['db']), (opcode << 11) | 0x100)) ?? Buffer.alloc(0);
      expect(replied.length).toBe(12);
      expect(replied.readUInt16BE(2)).toBe(0x8100 | (opcode << 11) | 4);
    }
    const two = Buffer.concat([question(['db']), question(['db'])]);
    for (const counts of [[2], [0], [65_535], [1, 1], [1, 0, 1], [1, 0, 0, 3], [65_535, 65_535, 65_535, 65_535]]) {
      const replied = reply(messageOf(counts, two)) ?? Buffer.alloc(0);
      expect([replied.length, rcodeOf(replied)]).toEqual([12, 1]);
    }
    const opts = queryOf(db, 'A', { additionals: [edns(512), edns(512)] });
    expect(rcodeOf(reply(opts) ?? Buffer.alloc(0))).toBe(1);
  });

  it('is a header for a name that has no text', () => {
    for (const labels of [['db.office', 'cpn', 'internal'], [Buffer.of(0xff), 'office', 'cpn', 'internal'], ['.']]) {
      const replied = reply(messageOf([1], question(labels))) ?? Buffer.alloc(0);
      expect([replied.length, rcodeOf(replied)]).toEqual([12, 1]);
    }
    // A pointer into the header, to a byte that ends the name.
    const compressed = reply(messageOf([1], Buffer.of(0xc0, 6, 0, 1, 0, 1))) ?? Buffer.alloc(0);
    expect([compressed.length, rcodeOf(compressed)]).toEqual([12, 1]);
  });

  it('does not exist for a reply, or for a message that is cut or has a loop', () => {
    const asked = queryOf(db, 'A', { additionals: [edns(1232)] });
    expect(reply(reply(asked) ?? Buffer.alloc(0))).toBeNull();
    for (const length of asked.keys()) {
      if (length !== 12 + db.length + 6) expect(reply(asked.subarray(0, length))).toBeNull();
    }
    for (const name of [[0xc0, 12], [1, 97, 0xc0, 12], [0xff, 0xff], [0x40, 1], [0x80, 1], [0xc0]]) {
      expect(reply(messageOf([1], Buffer.of(...name, 0, 1, 0, 1)))).toBeNull();
    }
    expect(reply(Buffer.concat([asked, Buffer.alloc(1232 - asked.length)]))).not.toBeNull();
    expect(reply(Buffer.concat([asked, Buffer.alloc(1233 - asked.length)]))).toBeNull();
  });

  it('never throws, and is never a larger one than its limit, whatever comes', () => {
    const types = [1, 2, 6, 13, 16, 33, 41, 43, 44, 46, 47, 48, 50, 52, 257, 250];
    const record = fc
      .record({
        type: fc.constantFrom(...types),
        length: fc.nat({ max: 65_535 }),
        data: fc.uint8Array({ maxLength: 80 }),
      })
      .map(({ type, length, data }) =>
        Buffer.concat([
          Buffer.of(0, type >> 8, type & 255, 4, 0, 0, 0, 0, 0),
          Buffer.of(length % 3 ? 0 : length >> 8, length % 3 ? data.length : length & 255),
          data,
        ]),
      );
    const rest = fc
      .tuple(fc.array(record, { maxLength: 3 }), fc.uint8Array({ maxLength: 40 }))
      .map(([records, bytes]) => Buffer.concat([question(['db', 'office', 'cpn', 'internal']), ...records, bytes]));
    const message = fc.oneof(
      fc.uint8Array({ maxLength: 1300 }).map((bytes) => Buffer.from(bytes)),
      fc.tuple(fc.array(fc.nat({ max: 3 }), { maxLength: 4 }), rest).map(([counts, bytes]) => messageOf(counts, bytes)),
      fc.tuple(fc.nat({ max: 2 }), rest).map(([count, bytes]) => messageOf([1, 0, 0, count], bytes)),
      fc.uint8Array({ maxLength: 300 }).map((bytes) => messageOf([1], Buffer.from(bytes))),
    );
    fc.assert(
      fc.property(message, (bytes) => {
        const before = Buffer.from(bytes);
        const replied = reply(bytes);
        expect(bytes.equals(before)).toBe(true);
        if (replied === null) return;
        expect(replied.length).toBeLessThanOrEqual(1232);
        expect(replied.readUInt16BE(0)).toBe(bytes.readUInt16BE(0));
        expect(decode(replied).type).toBe('response');
        expect(reply(replied)).toBeNull();
      }),
      { numRuns: 5_000 },
    );
  });

  it('has the address of every spelling', () => {
    const spelling = fc.array(fc.boolean(), { minLength: db.length, maxLength: db.length });
    fc.assert(
      fc.property(spelling, (upper) => {
        const name = [...db].map((letter, at) => (upper[at] ? letter.toUpperCase() : letter)).join('');
        const replied = reply(queryOf(name)) ?? undefined;
        expect(dataOf(replied)).toBe('10.77.0.1');
        expect(decode(replied ?? Buffer.alloc(0)).answers?.[0]?.name).toBe(name);
      }),
    );
  });
});
