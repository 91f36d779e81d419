import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assignLabels } from '../../../src/core/names/hosts-label.ts';
import { answer, buildZones, indexZones, type NamedNetwork } from '../../../src/core/names/zone.ts';
import { addressAt, rangeOf } from '../../../src/core/net/cidr.ts';
import { address, prefix } from '../samples.ts';

const host = (text: string, ...labels: string[]) => ({ address: address(text), labels });
const zonesOf = (...networks: NamedNetwork[]) => indexZones(networks.flatMap(buildZones));

const office: NamedNetwork = {
  label: 'office',
  range: prefix('10.77.0.0/16'),
  hosts: [
    host('10.77.0.1', 'edge-1', 'edge'),
    host('10.77.3.2', 'db'),
    host('10.77.0.3', 'constructor', '__proto__'),
    host('192.0.2.1', 'far'),
  ],
};
const zones = zonesOf(office);
const ask = (name: string, type = 'A', of = zones) => answer(of, { name, type });
const soa = (apex: string) => ({
  type: 'SOA',
  name: apex,
  ttl: 5,
  data: { mname: apex, rname: '.', serial: 1, refresh: 3600, retry: 600, expire: 86_400, minimum: 5 },
});
const none = (rcode: string, apex: string) => ({ rcode, answers: [], authorities: [soa(apex)] });
const one = (type: string, name: string, data: unknown) => ({
  rcode: 'NOERROR',
  answers: [{ type, name, ttl: 5, data }],
  authorities: [],
});
const refused = { rcode: 'REFUSED', answers: [], authorities: [] };
const forward = 'office.cpn.internal';
const reverse = '77.10.in-addr.arpa';

describe('the zone of a network', () => {
  it('has an A record for every label of a peer, also of one outside the range', () => {
    expect(ask('edge-1.office.cpn.internal')).toEqual(one('A', 'edge-1.office.cpn.internal', '10.77.0.1'));
    expect(ask('edge.office.cpn.internal')).toEqual(one('A', 'edge.office.cpn.internal', '10.77.0.1'));
    expect(ask('far.office.cpn.internal')).toEqual(one('A', 'far.office.cpn.internal', '192.0.2.1'));
  });

  it('ignores the case of a question, and repeats its spelling', () => {
    expect(ask('DB.Office.cPn.internal')).toEqual(one('A', 'DB.Office.cPn.internal', '10.77.3.2'));
    expect(ask('OFFICE.cpn.internal', 'NS').answers).toEqual([
      { type: 'NS', name: 'OFFICE.cpn.internal', ttl: 5, data: forward },
    ]);
    const kelvin = zonesOf({ ...office, hosts: [host('10.77.0.1', 'k')] });
    expect(ask('K.office.cpn.internal', 'A', kelvin).rcode).toBe('NOERROR');
    expect(ask('\u212a.office.cpn.internal', 'A', kelvin).rcode).toBe('NXDOMAIN');
  });

  it('has no data of other types for a name that exists', () => {
    for (const type of ['AAAA', 'MX', 'PTR', 'SOA', 'NS', 'UNKNOWN_65', 'constructor']) {
      expect(ask('db.office.cpn.internal', type)).toEqual(none('NOERROR', forward));
    }
  });

  it('has SOA and NS at its apex, and nothing else there', () => {
    expect(ask(forward, 'SOA').answers).toEqual([soa(forward)]);
    expect(ask(forward, 'NS')).toEqual(one('NS', forward, forward));
    for (const type of ['A', 'AAAA', 'PTR']) expect(ask(forward, type)).toEqual(none('NOERROR', forward));
  });

  it.each(['web', 'x.db', 'toString', 'hasOwnProperty', '', ' db', 'db\0', 'b\u00fccher', '_dns-sd._udp'])(
    'has no name %j',
    (label) => {
      expect(ask(`${label}.office.cpn.internal`)).toEqual(none('NXDOMAIN', forward));
    },
  );

  it('has peers named like the properties of an object', () => {
    expect(ask('constructor.office.cpn.internal')).toEqual(one('A', 'constructor.office.cpn.internal', '10.77.0.3'));
    expect(ask('__proto__.office.cpn.internal').rcode).toBe('NOERROR');
  });

  it.each([
    'cpn.internal',
    'internal',
    '.',
    '',
    'example.com',
    'lab.cpn.internal',
    'xoffice.cpn.internal',
    'constructor',
  ])('does not answer for %j', (name) => {
    for (const type of ['A', 'SOA', 'ANY']) expect(ask(name, type)).toEqual(refused);
  });

  it('has one record set for ANY, and refuses transfers', () => {
    expect(ask('db.office.cpn.internal', 'ANY')).toEqual(one('A', 'db.office.cpn.internal', '10.77.3.2'));
    expect(ask(forward, 'ANY').answers).toEqual([soa(forward)]);
    expect(ask('3.77.10.in-addr.arpa', 'ANY')).toEqual(none('NOERROR', reverse));
    for (const type of ['AXFR', 'IXFR']) expect(ask(forward, type)).toEqual(refused);
  });

  it('gives a label that two peers have to the first', () => {
    const twice = zonesOf({ ...office, hosts: [host('10.77.0.1', 'web'), host('10.77.0.2', 'WEB')] });
    expect(ask('web.office.cpn.internal', 'A', twice).answers).toHaveLength(1);
    expect(ask('web.office.cpn.internal', 'A', twice).answers[0]?.data).toBe('10.77.0.1');
  });
});

describe('the reverse zones', () => {
  it('have the first label of each peer of the range', () => {
    expect(ask('1.0.77.10.in-addr.arpa', 'PTR')).toEqual(one('PTR', '1.0.77.10.in-addr.arpa', `edge-1.${forward}`));
    expect(ask('1.0.77.10.IN-ADDR.ARPA', 'PTR').answers[0]?.name).toBe('1.0.77.10.IN-ADDR.ARPA');
    expect(ask('1.0.77.10.in-addr.arpa')).toEqual(none('NOERROR', reverse));
    expect(ask('1.2.0.192.in-addr.arpa', 'PTR')).toEqual(refused);
  });

  it.each(['9.0.77.10', '9.77.10', '01.0.77.10', '256.0.77.10', 'x.77.10', '1.1.0.77.10', '-1.77.10'])(
    'have no %s',
    (octets) => {
      expect(ask(`${octets}.in-addr.arpa`, 'PTR')).toEqual(none('NXDOMAIN', reverse));
    },
  );

  it('have the names between apex and peers, without data', () => {
    expect(ask('3.77.10.in-addr.arpa', 'PTR')).toEqual(none('NOERROR', reverse));
    expect(ask(reverse, 'PTR')).toEqual(none('NOERROR', reverse));
    expect(ask(reverse, 'SOA').answers).toEqual([soa(reverse)]);
    expect(ask('10.in-addr.arpa', 'PTR')).toEqual(refused);
    expect(ask('in-addr.arpa', 'SOA')).toEqual(refused);
  });

  it.each([
    ['10.0.0.0/7', ['10', '11'], ['9', '12']],
    ['172.16.0.0/12', ['16.172', '31.172'], ['15.172', '32.172', '172']],
    ['10.77.4.0/22', ['4.77.10', '7.77.10'], ['3.77.10', '8.77.10', '77.10']],
    ['10.77.0.64/26', ['64.0.77.10', '127.0.77.10'], ['63.0.77.10', '128.0.77.10', '0.77.10']],
    ['10.77.0.5/32', ['5.0.77.10'], ['4.0.77.10', '0.77.10']],
  ])('of %s are whole octets', (range, inside, outside) => {
    const [first, last] = [inside[0] ?? '', inside.at(-1) ?? ''];
    const { first: low, last: high } = rangeOf(prefix(range));
    const hosts = [...new Set([low, high])].map((number, at) => ({ address: addressAt(number), labels: [`h${at}`] }));
    const cut = zonesOf({ label: 'cut', range: prefix(range), hosts });
    for (const each of [first, last]) expect(ask(`${each}.in-addr.arpa`, 'SOA', cut).answers).toHaveLength(1);
    for (const each of outside) expect(ask(`${each}.in-addr.arpa`, 'PTR', cut)).toEqual(refused);
    for (const { address: own, labels } of hosts) {
      const name = `${own.split('.').reverse().join('.')}.in-addr.arpa`;
      expect(ask(name, 'PTR', cut)).toEqual(one('PTR', name, `${labels[0]}.cut.cpn.internal`));
    }
    expect(cut.size).toBeLessThanOrEqual(129);
  });

  it('of a range without its bits are the root of all addresses', () => {
    const all = zonesOf({ label: 'all', range: prefix('0.0.0.0/0'), hosts: [host('10.77.0.1', 'a')] });
    expect(ask('1.0.77.10.in-addr.arpa', 'PTR', all).answers).toHaveLength(1);
    expect(ask('77.10.in-addr.arpa', 'PTR', all)).toEqual(none('NOERROR', 'in-addr.arpa'));
  });
});

describe('several networks', () => {
  const lab: NamedNetwork = { label: 'lab', range: prefix('10.78.0.0/24'), hosts: [host('10.78.0.1', 'db')] };

  it('have a zone each', () => {
    const both = zonesOf(office, lab);
    expect(ask('db.lab.cpn.internal', 'A', both)).toEqual(one('A', 'db.lab.cpn.internal', '10.78.0.1'));
    expect(ask('db.office.cpn.internal', 'A', both)).toEqual(one('A', 'db.office.cpn.internal', '10.77.3.2'));
    expect(ask('1.0.78.10.in-addr.arpa', 'PTR', both).answers[0]?.data).toBe('db.lab.cpn.internal');
  });

  it('with the same range use the first, and the longest apex otherwise', () => {
    const same = { ...lab, range: office.range, hosts: [host('10.77.0.1', 'other')] };
    expect(ask('1.0.77.10.in-addr.arpa', 'PTR', zonesOf(office, same)).answers[0]?.data).toBe(`edge-1.${forward}`);
    const within = { ...same, range: prefix('10.77.0.0/24') };
    expect(ask('1.0.77.10.in-addr.arpa', 'PTR', zonesOf(office, within)).answers[0]?.data).toBe(
      'other.lab.cpn.internal',
    );
  });
});

describe('names', () => {
  it('have up to 63 bytes a label, and questions up to 253 in all', () => {
    const longest = 'a'.repeat(63);
    const long = zonesOf({ ...office, label: 'n'.repeat(63), hosts: [host('10.77.0.1', longest)] });
    const name = `${longest}.${'n'.repeat(63)}.cpn.internal`;
    expect(ask(name, 'A', long)).toEqual(one('A', name, '10.77.0.1'));
    const deep = `${'x.'.repeat(116)}y.${forward}`;
    expect(deep).toHaveLength(253);
    expect(ask(deep)).toEqual(none('NXDOMAIN', forward));
  });

  it('in Unicode have the labels of the hosts file', () => {
    const peers = ['Büro 1', '北京', 'edge 1', 'Edge-1'].map((name, at) => ({ id: at + 1, name }));
    const hosts = assignLabels(peers, []).map(({ peer, labels }) => ({ address: address(`10.77.0.${peer}`), labels }));
    const named = zonesOf({ ...office, hosts });
    for (const [label, number] of [
      ['b-ro-1', 1],
      ['peer-2', 2],
      ['edge-1', 3],
      ['edge-1-4', 4],
    ]) {
      expect(ask(`${label}.${forward}`, 'A', named).answers[0]?.data).toBe(`10.77.0.${number}`);
    }
  });

  it('of 10,000 peers are built and found quickly', () => {
    const hosts = Array.from({ length: 10_000 }, (_, at) => ({
      address: addressAt(rangeOf(office.range).first + BigInt(at + 1)),
      labels: [`peer-${at}`, `old-${at}`],
    }));
    const large = zonesOf({ ...office, hosts });
    for (const [at, { address: own }] of hosts.entries()) {
      expect(answer(large, { name: `old-${at}.${forward}`, type: 'A' }).answers[0]?.data === own).toBe(true);
      const reversed = `${own.split('.').reverse().join('.')}.in-addr.arpa`;
      const { answers } = answer(large, { name: reversed, type: 'PTR' });
      expect(answers[0]?.data === `peer-${at}.${forward}`).toBe(true);
    }
    // A search of the list for each question would take 30 s.
  });

  it('are never both denied and answered', () => {
    const label = fc.oneof(
      fc.constantFrom('office', 'cpn', 'internal', 'db', '77', '10', 'in-addr', 'arpa'),
      fc.string(),
    );
    const name = fc
      .array(label, { maxLength: 6 })
      .chain((labels) =>
        fc.constantFrom('', '.office.cpn.internal', '.77.10.in-addr.arpa').map((end) => `${labels.join('.')}${end}`),
      );
    const type = fc.constantFrom('A', 'AAAA', 'PTR', 'SOA', 'NS', 'ANY', 'TXT');
    fc.assert(
      fc.property(name, type, (asked, kind) => {
        const { rcode, answers, authorities } = ask(asked, kind);
        if (answers.length > 0) expect([rcode, authorities]).toEqual(['NOERROR', []]);
        else expect(authorities).toHaveLength(rcode === 'REFUSED' ? 0 : 1);
        // All types of a name exist, or none (RFC 8020).
        for (const other of ['A', 'SOA', 'PTR']) expect(ask(asked, other).rcode).toBe(rcode);
        for (const record of answers) expect([record.name, record.ttl]).toEqual([asked, 5]);
      }),
    );
  });
});
