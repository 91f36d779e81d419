import { describe, expect, it } from 'vitest';
import {
  checkAnswer,
  checkDomain,
  checkNoAnswer,
  checkPeerName,
  findDnsServers,
  findQueryPath,
} from '../../../src/core/explain/check-name.ts';
import type { NetworkOnHost } from '../../../src/core/explain/view.ts';
import type { OtherDomain } from '../../../src/core/host-state/actual.ts';
import type { DnsFailure, DomainReport } from '../../../src/core/names/split-dns.ts';
import { settingsOf } from '../../../src/core/reconcile/plan-dns.ts';
import { address, prefix, underlay } from '../samples.ts';
import { office, self, viewOf } from './samples.ts';

const lan = prefix('192.168.50.0/24');
const server = address('192.168.50.53');
const report: DomainReport = {
  ...{ domain: 'corp.example', route: lan, servers: [server] },
  ...{ state: 'used', reason: null },
};

const daemon = `${self.address}:553`;
/** The names of peers. */
const names: DomainReport = { ...report, domain: 'office.cpn.internal', route: null, servers: [daemon] };

interface Sample {
  readonly servers?: readonly string[];
  readonly domains?: readonly string[];
  readonly others?: readonly OtherDomain[];
  readonly reports?: readonly DomainReport[];
  readonly isUp?: boolean;
  readonly isServing?: boolean;
}

/** A network whose interface has these DNS settings. */
function view({
  servers = [server],
  domains = ['~corp.example', '~50.168.192.in-addr.arpa'],
  others = [],
  reports = [report],
  isUp = true,
  isServing = true,
}: Sample = {}): NetworkOnHost {
  const plain = viewOf(office);
  const { actual, desired } = plain;
  const own = { ...settingsOf({ servers: [], domains: [] }), servers, domains };
  const link = actual.link && { ...actual.link, up: isUp };
  const resolvers = [address('127.0.0.53'), address('203.0.113.53')];
  const dns = { program: 'systemd-resolved', own, others, isServing } as const;
  const known = { ...actual, link, underlay: { ...underlay, resolvers }, dns };
  return { ...plain, desired: { ...desired, domains: reports }, actual: known };
}
const find = (name: string, sample?: Sample) => findQueryPath(name, [view(sample)]);
const textOf = (name: string, sample?: Sample) => checkDomain(find(name, sample)).detail;
const asBefore = 'queries go to 203.0.113.53, as without cpn';

const served: Sample = { servers: [daemon, server], domains: ['~office.cpn.internal'], reports: [names, report] };

describe('the queries for a name go', () => {
  it.each<[string, string, Sample, string]>([
    [
      'to the server behind a route',
      'db.corp.example',
      {},
      `in corp.example, behind ${lan} of network office: cpn0 sends queries to ${server}`,
    ],
    [
      'to the same server for a reverse zone',
      '9.50.168.192.in-addr.arpa',
      {},
      `in 50.168.192.in-addr.arpa of network office: cpn0 sends queries to ${server}`,
    ],
    ['nowhere new for another name', 'corp.example.org', {}, `in no domain of a network: ${asBefore}`],
    ['nowhere new without servers', 'db.corp.example', { servers: [] }, `in no domain of a network: ${asBefore}`],
    ['nowhere new while the interface is down', 'db.corp.example', { isUp: false }, 'in no domain'],
    [
      'to the interface with the longer domain',
      'db.lab.corp.example',
      { others: [{ domain: 'lab.corp.example', link: 'wg9' }] },
      'in lab.corp.example of the interface wg9, which cpn did not set',
    ],
    [
      'to the network with the longer domain',
      'db.corp.example',
      {
        others: [
          { domain: '.', link: 'wg9' },
          { domain: 'example', link: null },
        ],
      },
      'in corp.example, behind',
    ],
    [
      'to the settings of the resolver',
      'www.example',
      {
        others: [
          { domain: '.', link: 'wg9' },
          { domain: 'example', link: null },
        ],
      },
      'in example of the settings of the resolver, which cpn did not set',
    ],
    [
      'to the server of the route through the daemon',
      'db.corp.example',
      { servers: [daemon, server] },
      `cpn0 sends queries to the daemon of this host at ${self.address}, which forwards them to ${server}`,
    ],
    [
      'to the daemon for names of peers',
      'nas.office.cpn.internal',
      { ...served },
      `in office.cpn.internal of network office: cpn0 sends queries to the daemon of this host at ${self.address}`,
    ],
    [
      'to a daemon that ended',
      'nas.office.cpn.internal',
      { ...served, isServing: false },
      `${self.address}, which does not serve names`,
    ],
    [
      'nowhere new for a domain that waits',
      'db.corp.example',
      { servers: [], reports: [{ ...report, state: 'waiting', reason: 'it follows in a minute' }] },
      `corp.example of network office is waiting: it follows in a minute; ${asBefore}`,
    ],
    [
      'nowhere new for a refused domain',
      'db.corp.example',
      { servers: [], reports: [{ ...report, state: 'refused', reason: 'this host takes none (--no-dns)' }] },
      `corp.example of network office is refused: this host takes none (--no-dns); ${asBefore}`,
    ],
  ])('%s', (_, name, sample, expected) => {
    expect(textOf(name, sample)).toContain(expected);
  });

  it('to no domain of our own interface that another network lists', () => {
    const others = [{ domain: 'corp.example', link: 'cpn0' }];
    expect(find('db.corp.example', { others, servers: [] })).toMatchObject({ domain: null });
  });

  it('nowhere if the hosts file has the name', () => {
    expect(checkDomain(find('nas.office.cpn.internal'), 'office').detail).toMatch(
      /^the name of a peer .*\/etc\/hosts$/,
    );
  });
});

describe('a name without an address', () => {
  const check = (name: string, failure: DnsFailure | null, sample?: Sample) =>
    checkNoAnswer(name, find(name, sample), failure);

  it('stops at a daemon that does not serve names, and has the reason of a domain that is refused by now', () => {
    const stopped = { servers: [daemon], domains: ['~corp.example'], isServing: false };
    expect(check('db.corp.example', null, stopped)).toMatchObject({
      ok: false,
      detail: 'has no address: the daemon of this host, which has its domain, does not serve names',
      remedy: expect.stringMatching(/^systemctl enable --now cpn, or cpn run; if it runs, its log has the reason/),
    });
    const refused: DomainReport = { ...report, state: 'refused', reason: 'not accepted' };
    expect(check('db.corp.example', null, { servers: [daemon], reports: [refused] })).toMatchObject({
      remedy: 'corp.example of network office is refused: not accepted',
    });
  });

  it('stops at the server of its domain', () => {
    expect(findDnsServers(find('db.corp.example'))).toEqual([server]);
    expect(check('db.corp.example', 'silent')).toMatchObject({
      ok: false,
      detail: `has no address: ${server} does not answer`,
      remedy: expect.stringContaining(`check that a DNS server runs at ${server}`),
    });
    expect(check('db.corp.example', 'REFUSED')).toMatchObject({
      ok: false,
      detail: `has no address: ${server} answers REFUSED for corp.example`,
      remedy: `check that ${server} resolves corp.example for addresses of the network`,
    });
    expect(check('db.corp.example', null)).toMatchObject({
      detail: `has no address on this host, though ${server} answers queries`,
      remedy: expect.stringMatching(/^"resolvectl query db\.corp\.example" .*"cpn doctor"/),
    });
  });

  it('has no server in a network if none has its domain, or if the daemon serves it', () => {
    const others = [{ domain: 'example', link: 'wg9' }];
    expect(findDnsServers(find('www.example'))).toEqual([]);
    expect(findDnsServers(find('www.example', { others }))).toEqual([]);
    expect(findDnsServers(find('x.office.cpn.internal', served))).toEqual([]);
    expect(check('www.example', null, { others })).toMatchObject({ detail: 'has no address in example of wg9' });
  });

  it('has the reason if its domain is refused, else how to add the domain', () => {
    const reports = [{ ...report, state: 'refused' as const, reason: 'it is a public suffix' }];
    expect(check('db.corp.example', null, { servers: [], reports })).toMatchObject({
      detail: 'has no address: 203.0.113.53 gave none',
      remedy: 'corp.example of network office is refused: it is a public suffix',
    });
    expect(check('www.example', null).remedy).toMatch(/^check the spelling; "cpn network update NETWORK --route-dns/);
  });

  it('below cpn.internal is that of no peer', () => {
    expect(check('x.office.cpn.internal', null)).toMatchObject({ detail: 'is the name of no peer' });
  });
});

it('an answer lists all addresses', () => {
  expect(checkAnswer([server, address('2001:db8::1')])).toMatchObject({
    ok: true,
    detail: `resolves to ${server}, and to 2001:db8::1`,
  });
});

describe('the name of a peer', () => {
  const named = { peer: 'nas', network: 'office', link: 'cpn0', address: address('10.77.0.2') };
  const check = (answer: readonly string[], view?: NetworkOnHost) =>
    checkPeerName('nas.office.cpn.internal', named, answer.map(address), view);

  it.each<[string, readonly string[], boolean | null, string]>([
    ['its address', ['10.77.0.2'], true, 'the name of nas in network office, resolves to 10.77.0.2'],
    ['another address', ['192.0.2.1'], false, 'resolves to 192.0.2.1 on this host, and not to 10.77.0.2'],
    ['none', [], null, 'the name of nas in network office, 10.77.0.2; it does not resolve on this host'],
  ])('resolves to %s', (_, answer, ok, detail) => {
    const found = check(answer);
    expect(found).toMatchObject({ check: 'name', ok, detail: expect.stringContaining(detail) });
    expect(found.remedy === null).toBe(ok === true);
  });

  it('needs the daemon, or the hosts file, or a resolver that programs use', () => {
    const idle = view({ isServing: false });
    const desired = {
      ...idle.desired,
      served: { address: self.address, label: 'office', forwarded: [], afterwards: null },
    };
    expect(check([], idle).remedy).toMatch(/^cpn set cpn0 --hosts/);
    expect(check([], { ...idle, desired }).remedy).toMatch(/systemctl enable --now cpn/);
    expect(check([], view()).remedy).toMatch(/^"resolvectl query nas\.office\.cpn\.internal"/);
  });
});
