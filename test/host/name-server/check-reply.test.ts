import { decode, encode, type Packet, type Answer as PacketRecord } from 'dns-packet';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Answer } from '../../../src/core/names/zone.ts';
import { checkReply, type NetworkNames } from '../../../src/host/name-server/check-reply.ts';
import { replyTo } from '../../../src/host/name-server/message.ts';
import { edns, messageOf, queryOf, rcodeOf } from './clients.ts';

/** The server has corp.lan. The daemon has the names of peers. */
const network: NetworkNames = {
  isInside: (name) => name === 'corp.lan' || name.endsWith('.corp.lan'),
  findOwn: (name) => (name.endsWith('.office.cpn.internal') ? own(name) : null),
};
function own(name: string): Answer {
  const isThere = name === 'db.office.cpn.internal';
  return {
    rcode: isThere ? 'NOERROR' : 'NXDOMAIN',
    answers: isThere ? [{ type: 'A', name, ttl: 5, data: '10.77.0.1' }] : [],
    authorities: [],
  };
}

const name = 'Cname.corp.lan';
const bank = 'bank.example';
const cname = (from: string, data: string, ttl = 60) => ({ type: 'CNAME' as const, name: from, ttl, data });
const a = (of: string, data = '6.6.6.6', ttl = 3600) => ({ type: 'A' as const, name: of, ttl, data });
const soa = (of: string) => {
  const times = { serial: 1, refresh: 1, retry: 1, expire: 1, minimum: 300 };
  return { type: 'SOA' as const, name: of, ttl: 300, data: { mname: `ns.${bank}`, rname: `a.${bank}`, ...times } };
};

interface Sent extends Packet {
  readonly asked?: string;
  readonly qtype?: string;
}

/** What the client receives for this reply of the server; null for a failure. */
function receive(answers: PacketRecord[], { asked = name, qtype = 'A', ...packet }: Sent = {}, changes: Packet = {}) {
  const query = queryOf(asked, qtype, changes);
  const { questions = [] } = decode(query);
  const reply = encode({ type: 'response', id: 77, flags: 0x180, questions, answers, ...packet });
  const checked = checkReply(reply, { message: query, question: { name: asked, type: qtype } }, network);
  if (checked === null) return null;
  const bytes = replyTo(query, () => checked, 'udp') as Buffer;
  return { ...decode(bytes), isSame: bytes.equals(reply), bytes };
}
/** The same without what the records of the answer do not concern. */
const answersOf = (...received: Parameters<typeof receive>) => receive(...received)?.answers ?? null;
const plain = { class: 'IN', flush: false };

describe('a reply within the domain', () => {
  it.each<[string, PacketRecord[], Sent]>([
    ['an address', [a(name)], {}],
    ['a name of it', [cname(name, 'x.corp.lan'), cname('X.corp.lan', 'y.corp.lan'), a('y.corp.lan')], {}],
    ['a name without data', [cname(name, 'x.corp.lan')], { authorities: [soa('corp.lan')], flags: 0x183 }],
    ['no data', [], { authorities: [soa('corp.lan')] }],
    ['another type', [{ type: 'MX', name, ttl: 1, data: { preference: 1, exchange: bank } }], { qtype: 'MX' }],
    ['a CNAME record itself', [cname(name, 'x.corp.lan')], { qtype: 'CNAME' }],
    ['a DNAME record above it', [{ type: 'DNAME', name: 'corp.lan', ttl: 1, data: bank }, a(name)], {}],
    ['an OPT record', [a(name)], { additionals: [edns(1232)] }],
  ])('stays as it is: %s', (_, answers, packet) => {
    expect(receive(answers, packet)).toMatchObject({ isSame: true });
  });

  it('stays as it is, if it fails', () => {
    expect(receive([], { flags: 0x185 })).toMatchObject({ isSame: true, rcode: 'REFUSED' });
    expect(receive([], { flags: 0x181, questions: [] })).toMatchObject({ isSame: true, rcode: 'FORMERR' });
  });

  it('has no records of foreign names, of no chain, or of another class', () => {
    for (const other of [
      a(bank),
      a('other.corp.lan'),
      a('db.office.cpn.internal'),
      { ...a(name), class: 'CH' as const },
    ])
      for (const answers of [
        [a(name, '192.168.50.9'), other],
        [other, a(name, '192.168.50.9')],
      ])
        expect(answersOf(answers)).toEqual([{ ...a(name, '192.168.50.9'), ...plain }]);
    for (const section of ['authorities', 'additionals'] as const)
      for (const other of [a(bank), a('db.office.cpn.internal'), soa('lan')])
        expect(receive([a(name)], { [section]: [other] })).toMatchObject({
          ...{ answers: [a(name)], authorities: [], additionals: [] },
        });
  });

  it('believes the first of two CNAME records', () => {
    const answers = [cname(name, 'x.corp.lan'), cname(name, bank), a('x.corp.lan', '192.168.50.9', 7), a(bank)];
    expect(answersOf(answers)).toMatchObject([a(name, '192.168.50.9', 7)]);
  });

  it('keeps how long it holds that there is no data, from a zone above the domain', () => {
    const flags = 0x183;
    const { authorities, ...found } = receive([], { flags, authorities: [soa('lan')] }) ?? {};
    expect(found).toMatchObject({ rcode: 'NXDOMAIN', answers: [] });
    expect(authorities).toEqual([{ ...soa(name), ...plain }]);
    expect(receive([], { flags, authorities: [soa(bank)] })).toMatchObject({ rcode: 'NXDOMAIN', authorities: [] });
  });
});

describe('a reply that leaves the domain', () => {
  it('gives the data to the name of the question, for the shortest time', () => {
    const answers = [cname(name, 'x.corp.lan', 50), cname('x.corp.lan', bank, 40), a(bank), a(bank, '6.6.6.7')];
    const packet = { authorities: [soa('example')], additionals: [a('ns.example'), edns(1232)], flags: 0x1a0 };
    expect(receive(answers, packet)).toMatchObject({
      ...{ rcode: 'NOERROR', flag_ad: false, authorities: [], additionals: [] },
      answers: [a(name, '6.6.6.6', 40), a(name, '6.6.6.7', 40)],
    });
    expect(receive(answers, packet, { additionals: [edns(1232)] })?.additionals).toMatchObject([{ type: 'OPT' }]);
  });

  it.each<[string, PacketRecord]>([
    ['AAAA', { type: 'AAAA', name, ttl: 60, data: 'fd00::1' }],
    ['MX', { type: 'MX', name, ttl: 60, data: { preference: 10, exchange: `mail.${bank}` } }],
    ['SRV', { type: 'SRV', name, ttl: 60, data: { priority: 1, weight: 2, port: 3, target: bank } }],
    ['TXT', { type: 'TXT', name, ttl: 60, data: [Buffer.from('v=1')] }],
    ['SOA', { ...soa(name), ttl: 60 }],
  ])('keeps data of the type %s', (qtype, record) => {
    const answers = [cname(name, bank), { ...record, name: bank } as PacketRecord];
    expect(answersOf(answers, { qtype })).toMatchObject([record]);
  });

  it('keeps data with pointers into the reply', () => {
    const question = queryOf('c.corp.lan', 'MX').subarray(12);
    const toBank = Buffer.from('c00c 0005 0001 0000003c 000e 0462616e6b076578616d706c6500'.replaceAll(' ', ''), 'hex');
    const at = 12 + question.length + 12;
    const mx = Buffer.from(
      `c0${at.toString(16)} 000f 0001 0000003c 0009 000a 046d61696cc0${at.toString(16)}`.replaceAll(' ', ''),
      'hex',
    );
    const reply = messageOf([1, 2], Buffer.concat([question, toBank, mx]), 0x8180);
    const query = queryOf('c.corp.lan', 'MX');
    const checked = checkReply(reply, { message: query, question: { name: 'c.corp.lan', type: 'MX' } }, network);
    const bytes = replyTo(query, () => checked ?? Buffer.alloc(0), 'udp') as Buffer;
    expect(decode(bytes).answers).toMatchObject([
      { type: 'MX', name: 'c.corp.lan', ttl: 60, data: { preference: 10, exchange: `mail.${bank}` } },
    ]);
  });

  it('keeps only a CNAME record without data, which no resolver caches', () => {
    const answers = [cname(name, 'x.corp.lan'), cname('x.corp.lan', bank), cname(bank, 'next.example')];
    for (const flags of [0x180, 0x183])
      expect(receive(answers, { flags, authorities: [soa('example')] })).toMatchObject({
        ...{ rcode: 'NOERROR', authorities: [], additionals: [], answers: [cname(name, bank, 0)] },
      });
  });

  it('has only the CNAME record that a client queried', () => {
    for (const qtype of ['CNAME', 'ANY'])
      expect(receive([cname(name, bank), a(bank)], { qtype, flags: 0x183, authorities: [soa(bank)] })).toMatchObject({
        ...{ rcode: 'NOERROR', answers: [cname(name, bank, 0)], authorities: [] },
      });
  });

  it('is truncated if the reply of the server is, or if it is too long', () => {
    const truncated = { flag_tc: true, answers: [] };
    expect(receive([cname(name, bank), a(bank)], { flags: 0x380 })).toMatchObject(truncated);
    const many = Array.from({ length: 60 }, (_, at) => a(bank, `6.6.6.${at}`));
    expect(receive([cname(name, bank), ...many])).toMatchObject(truncated);
    expect(receive([cname(name, bank), ...many.slice(0, 12)])?.answers).toHaveLength(12);
  });

  it('fails for a loop, and for a chain of more than 16 CNAME records', () => {
    expect(receive([cname(name, bank), cname(bank, name)])).toBeNull();
    const chain = (length: number) => [
      ...Array.from({ length }, (_, at) => cname(at === 0 ? name : `x${at}.example`, `x${at + 1}.example`)),
      a(`x${length}.example`),
    ];
    expect(answersOf(chain(16))).toMatchObject([a(name, '6.6.6.6', 60)]);
    expect(receive(chain(17))).toBeNull();
    expect(receive([cname(name, bank)], { flags: 0x182 })).toBeNull();
  });

  it('has the own answer for the name of a peer', () => {
    const peer = 'DB.office.cpn.internal';
    for (const records of [[], [a(peer)], [cname(peer, bank), a(bank)]])
      for (const flags of [0x180, 0x183])
        expect(receive([cname(name, peer), ...records], { flags })).toMatchObject({
          ...{ rcode: 'NOERROR', answers: [a(name, '10.77.0.1', 5)], authorities: [] },
        });
    expect(answersOf([cname(name, peer, 2)])).toMatchObject([{ ttl: 2 }]);
    expect(receive([cname(name, 'none.office.cpn.internal'), a('none.office.cpn.internal')])).toMatchObject({
      ...{ rcode: 'NXDOMAIN', answers: [], authorities: [] },
    });
  });
});

describe('a hostile reply', () => {
  it('does not confuse a dot in a label with a domain', () => {
    const label = (text: string) => Buffer.concat([Buffer.of(text.length), Buffer.from(text)]);
    const question = queryOf('c.corp.lan').subarray(12);
    const owner = Buffer.concat([label('x.corp'), label('lan'), Buffer.of(0)]);
    const toOwner = Buffer.concat([Buffer.from('c00c0005000100000e10', 'hex'), Buffer.of(0, owner.length), owner]);
    const address = Buffer.concat([owner, Buffer.from('0001000100000e10000406060606', 'hex')]);
    const query = queryOf('c.corp.lan');
    const reply = messageOf([1, 2], Buffer.concat([question, toOwner, address]), 0x8180);
    const checked = checkReply(reply, { message: query, question: { name: 'c.corp.lan', type: 'A' } }, network);
    expect(checked).toMatchObject({ answers: [{ name: 'c.corp.lan' }] });
  });

  const names = ['cname.corp.lan', 'x.corp.lan', 'corp.lan', 'lan', bank, 'db.office.cpn.internal', '.'];
  const record = fc.record({
    of: fc.constantFrom(...names),
    data: fc.constantFrom(...names),
    kind: fc.nat({ max: 3 }),
  });
  const records = fc.array(record, { maxLength: 6 }).map((all) =>
    all.map(({ of, data, kind }): PacketRecord => {
      if (kind === 0) return a(of);
      if (kind === 1) return soa(of);
      return { type: kind === 2 ? 'DNAME' : 'CNAME', name: of, ttl: 60, data };
    }),
  );
  const qtype = fc.constantFrom('A', 'CNAME', 'ANY', 'SOA', 'AAAA');
  const flags = fc.constantFrom(0x180, 0x183, 0x380, 0x182);

  it('has no owner outside the domain, and no data of a name that a CNAME record leads to outside', () => {
    fc.assert(
      fc.property(records, records, records, qtype, flags, (answers, authorities, additionals, type, bits) => {
        const received = receive(answers, { authorities, additionals, qtype: type, flags: bits });
        if (received === null) return;
        const all = [...(received.answers ?? []), ...(received.authorities ?? []), ...(received.additionals ?? [])];
        for (const { name: owner } of all) expect(network.isInside(owner.toLowerCase())).toBe(true);
        const leaves = received.answers?.some(({ type: each, ...rest }) => {
          return each === 'CNAME' && 'data' in rest && !network.isInside(String(rest.data));
        });
        if (leaves) expect(received).toMatchObject({ rcode: 'NOERROR', authorities: [], additionals: [] });
      }),
      { numRuns: 3_000 },
    );
  });

  it('is not read if it has more than a thousand records', () => {
    const query = queryOf('c.corp.lan');
    const long = Buffer.from(`${'0161'.repeat(110)}c00c00100001000000000000`, 'hex');
    const read = (count: number) => {
      const pointer = (0xc000 + query.length).toString(16);
      const records = Array.from({ length: count - 1 }, () => Buffer.from(`${pointer}00100001000000000000`, 'hex'));
      const reply = messageOf([1, count], Buffer.concat([query.subarray(12), long, ...records]), 0x8180);
      const question = { name: 'c.corp.lan', type: 'TXT' };
      return checkReply(reply, { message: query, question }, network) !== null;
    };
    expect([read(999), read(5400)]).toEqual([true, false]);
  });

  it('never throws', () => {
    const bytes = fc.uint8Array({ maxLength: 80 }).map((each) => Buffer.from(each));
    const counts = fc.array(fc.nat({ max: 3 }), { minLength: 4, maxLength: 4 });
    const query = queryOf('c.corp.lan');
    const question = { name: 'c.corp.lan', type: 'A' };
    const heads = [
      '',
      'c00c',
      'c00c00010001',
      'c00c0005000100000001',
      'c00c00050001000000010002c00c',
      'c00c0006000100000001',
    ];
    const head = fc.constantFrom(...heads).map((hex) => Buffer.from(hex, 'hex'));
    const message = fc.oneof(
      bytes,
      fc
        .tuple(counts, head, bytes)
        .map(([each, start, rest]) =>
          messageOf([1, ...each.slice(1)], Buffer.concat([query.subarray(12), start, rest]), 0x8180),
        ),
      fc.tuple(counts, bytes).map(([each, rest]) => messageOf(each, rest, 0x8180)),
    );
    fc.assert(
      fc.property(message, (reply) => {
        const before = Buffer.from(reply);
        const checked = checkReply(reply, { message: query, question }, network);
        expect(reply.equals(before)).toBe(true);
        if (checked === null || Buffer.isBuffer(checked)) return;
        const received = replyTo(query, () => checked, 'udp') as Buffer;
        expect([0, 3]).toContain(rcodeOf(received));
        expect(received.length).toBeLessThanOrEqual(512);
      }),
      { numRuns: 5_000 },
    );
  });
});
