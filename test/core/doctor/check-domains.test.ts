import { expect, it } from 'vitest';
import { checkDomains, type ExaminedDomains, findUsedServers } from '../../../src/core/doctor/check-domains.ts';
import type { DomainReport } from '../../../src/core/names/split-dns.ts';
import { address, bare, desireFor, network, peer, prefix } from '../samples.ts';

const lan = prefix('192.168.50.0/24');
const [server, second] = [address('192.168.50.53'), address('192.168.50.54')];
const used: DomainReport = {
  ...{ domain: 'corp.example', route: lan, servers: [server] },
  ...{ state: 'used', reason: null },
};
const refused: DomainReport = { ...used, state: 'refused', reason: 'the interface cpn1 has it' };
const networks = [{ network: 'lab', link: 'cpn1', domains: ['corp.example'] }];

function check(report: DomainReport, changes: Partial<ExaminedDomains> = {}) {
  const desired = { ...desireFor(peer(3), network([peer(3)])), domains: [report] };
  const examined = { network: 'office', desired, actual: bare, entries: [], networks: [], queried: [] };
  return checkDomains({ ...examined, ...changes });
}
const checked = 'the domain corp.example behind 192.168.50.0/24 of network office';

it('a domain in use names its servers, and each server whether it answers', () => {
  const { domain } = used;
  const queried = [
    { server, domain, failure: null },
    { server: second, domain, failure: 'silent' as const },
    { server: second, domain, failure: 'REFUSED' as const },
  ];
  expect(check(used, { queried })).toMatchObject([
    { verdict: 'ok', checked, found: `cpn0 sends its queries to ${server}` },
    { verdict: 'ok', checked: `the DNS server ${server} of corp.example on cpn0`, found: 'answers' },
    {
      ...{ verdict: 'problem', found: 'does not answer' },
      remedy: `cpn explain ${second} --protocol udp --port 53`,
    },
    {
      ...{ verdict: 'problem', found: 'answers REFUSED' },
      remedy: `check that ${second} resolves corp.example for addresses of the network`,
    },
  ]);
  expect(findUsedServers([used, { ...refused, servers: [second] }])).toEqual([{ server, domain }]);
});

it('the names of peers are behind no route, and their server is the daemon', () => {
  const names = { ...used, domain: 'office.cpn.internal', route: null, servers: ['10.77.0.3:553'] };
  expect(check(names)).toMatchObject([{ verdict: 'ok', checked: 'the domain office.cpn.internal of network office' }]);
  expect(findUsedServers([names])).toEqual([]);
});

it('a refused domain has the reason', () => {
  expect(check(refused)).toMatchObject([
    { verdict: 'note', checked, found: 'is not resolved through the tunnel: the interface cpn1 has it', remedy: null },
  ]);
  expect(check(refused, { actual: { ...bare, dns: null } })).toMatchObject([
    { remedy: 'apt install systemd-resolved' },
  ]);
});

it('a domain of two networks is that of the first joined, unless it is refused for another reason', () => {
  expect(check(refused, { networks })).toMatchObject([
    {
      ...{ verdict: 'note', checked, found: 'is that of network lab on cpn1, which has it too and was joined first' },
      remedy: 'cpn set cpn1 --no-dns, for cpn0 to resolve it',
    },
  ]);
  const reason = 'it is a public suffix';
  expect(check({ ...refused, reason }, { networks })).toMatchObject([
    { found: `is not resolved through the tunnel: ${reason}` },
  ]);
  const other = [{ network: 'lab', link: 'cpn1', domains: ['other.example'] }];
  expect(check(refused, { networks: other })).toMatchObject([
    { found: 'is not resolved through the tunnel: the interface cpn1 has it' },
  ]);
});

it('a server that stays outside the tunnel receives no queries', () => {
  const desired = { ...desireFor(peer(3), network([peer(3)])), keptOutside: [{ address: second, what: 'a resolver' }] };
  const entries = [{ route: lan, servers: [server, second], domains: ['corp.example'] }];
  expect(check(used, { entries, desired }).slice(-1)).toMatchObject([
    {
      verdict: 'note',
      checked: `the DNS server ${second} of domains behind ${lan}`,
      found: 'receives no queries: it stays outside the tunnel, a resolver',
      remedy: expect.stringMatching(/^cpn set cpn0 --allow-route 192\.168\.50\.0\/24/),
    },
  ]);
});
