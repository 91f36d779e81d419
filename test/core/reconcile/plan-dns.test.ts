import { describe, expect, test } from 'vitest';
import type { Actual, FileResolver, LinkDnsSettings } from '../../../src/core/host-state/actual.ts';
import { planDns, planDnsRemoval, revertOf, settingsOf } from '../../../src/core/reconcile/plan-dns.ts';
import { address, bare } from '../samples.ts';
import { simulate } from '../simulate.ts';

const dns = {
  servers: [{ address: address('192.168.50.53'), port: 53 }],
  domains: ['50.168.192.in-addr.arpa', 'corp.example'],
};
const wanted = { link: 'cpn0', dns, ownsDns: true };
const link = { name: 'cpn0', mtu: 1420, up: true, alias: 'cpn:7', addresses: [] };
const withOwn = (own: LinkDnsSettings | null): Actual => ({
  ...bare,
  link,
  dns: { program: 'systemd-resolved', own, others: [], isServing: false },
});

describe('the DNS settings of the interface', () => {
  test('are added once', () => {
    const actual = withOwn(null);
    const steps = planDns(wanted, actual);
    expect(steps).toMatchObject([
      {
        do: 'set-dns',
        changes: [
          {
            ...{ action: 'add', kind: 'dns', target: 'cpn0', before: null },
            after: {
              servers: ['192.168.50.53'],
              domains: ['~50.168.192.in-addr.arpa', '~corp.example'],
              ...{ default_route: 'no', dnssec: 'no', dns_over_tls: 'no' },
            },
          },
        ],
      },
    ]);
    expect(planDns(wanted, simulate(actual, steps))).toEqual([]);
  });

  test.each<[string, Partial<LinkDnsSettings>]>([
    ['other servers', { servers: ['192.168.50.54'] }],
    ['another port', { servers: ['192.168.50.53:5353'] }],
    ['a domain less', { domains: ['~corp.example'] }],
    ['a search domain', { domains: ['~50.168.192.in-addr.arpa', 'corp.example'] }],
    ['all other names', { isDefaultRoute: true }],
    ['DNSSEC', { dnssec: 'yes' }],
    ['DNS over TLS', { dnsOverTls: 'opportunistic' }],
  ])('are repaired: %s', (_, changes) => {
    const actual = withOwn({ ...settingsOf(dns), ...changes });
    const steps = planDns(wanted, actual);
    expect(steps).toMatchObject([{ do: 'set-dns', changes: [{ action: 'update' }] }]);
    expect(planDns(wanted, simulate(actual, steps))).toEqual([]);
  });

  test('are the same in another order of domains', () => {
    const { domains, ...rest } = settingsOf(dns);
    expect(planDns(wanted, withOwn({ ...rest, domains: domains.toReversed() }))).toEqual([]);
  });

  test('are removed if they are ours alone', () => {
    const actual = withOwn(settingsOf(dns));
    const steps = planDns({ ...wanted, dns: null }, actual);
    expect(steps).toMatchObject([{ do: 'revert-dns', link: 'cpn0', changes: [{ action: 'remove', kind: 'dns' }] }]);
    expect(planDns({ ...wanted, dns: null }, simulate(actual, steps))).toEqual([]);
    expect(planDns({ ...wanted, dns: null, ownsDns: false }, actual)).toEqual([]);
    expect(planDnsRemoval('cpn0', actual, 'taken back')).toMatchObject([{ do: 'revert-dns' }]);
    expect(planDnsRemoval('cpn0', withOwn(null), 'taken back')).toEqual([]);
  });

  test.each([null, undefined])('are left alone without a resolver that has them: %s', (resolver) => {
    const actual: Actual = { ...bare, link, ...(resolver === null && { dns: null }) };
    expect(planDns(wanted, actual)).toEqual([]);
    expect(planDnsRemoval('cpn0', actual, 'taken back')).toEqual([]);
  });
});

describe('our file for a resolver', () => {
  const path = '/etc/dnsmasq.d/cpn-cpn0.conf';
  const resolver: FileResolver = {
    ...{ program: 'dnsmasq', own: null, isRecent: false, folder: '/etc/dnsmasq.d', trouble: null },
    ...{ others: [], isServing: false },
  };
  const bareHost: Actual = { ...bare, link, dns: resolver, dnsFiles: {} };
  const written = simulate(bareHost, planDns(wanted, bareHost));
  const [text = ''] = Object.values(written.dnsFiles ?? {});

  test('is written once, with the change of each line', () => {
    const lines = [
      ...['server=/50.168.192.in-addr.arpa/192.168.50.53', 'rebind-domain-ok=/50.168.192.in-addr.arpa/'],
      ...['server=/corp.example/192.168.50.53', 'rebind-domain-ok=/corp.example/'],
    ];
    expect(planDns(wanted, bareHost)).toMatchObject([
      {
        ...{ do: 'set-dns', dns, files: { program: 'dnsmasq', texts: { [path]: text } } },
        changes: [{ action: 'add', kind: 'dns', target: path, before: null, after: lines }],
      },
    ]);
    expect(planDns(wanted, written)).toEqual([]);
  });

  test.each([`${text}# not read yet\n`, text.replace('corp', 'other'), ''])('is repaired: %j', (other) => {
    const actual: Actual = { ...written, dnsFiles: { [path]: other } };
    const steps = planDns(wanted, actual);
    expect(steps).toMatchObject([{ do: 'set-dns', changes: [{ action: 'update' }] }]);
    expect(planDns(wanted, simulate(actual, steps))).toEqual([]);
  });

  test('is removed, and read again', () => {
    const removal = { do: 'revert-dns', files: { program: 'dnsmasq', texts: { [path]: null } } };
    expect(planDns({ ...wanted, dns: null }, written)).toMatchObject([{ ...removal, changes: [{ action: 'remove' }] }]);
    expect(planDnsRemoval('cpn0', written, 'taken back')).toMatchObject([removal]);
    // The removal may not have been read.
    expect(planDnsRemoval('cpn0', bareHost, 'taken back')).toMatchObject([removal]);
    expect(planDnsRemoval('cpn0', { ...bareHost, dns: null }, 'taken back')).toEqual([]);
    const [step] = planDns(wanted, bareHost);
    if (step?.do === 'set-dns') expect(revertOf(step)).toMatchObject({ ...removal, changes: [] });
  });

  test('that is gone is read once more if its removal was not read', () => {
    const none = { ...wanted, dns: null };
    expect(planDns(none, bareHost)).toMatchObject([
      { do: 'revert-dns', files: { program: 'dnsmasq', texts: { [path]: null } } },
    ]);
    expect(planDns({ ...none, ownsDns: false }, bareHost)).toEqual([]);
  });

  test('is neither written nor removed for a program that must not be restarted, unless no domain is wanted', () => {
    const stuck = { dns: { ...resolver, unstartable: 'no' } };
    const keeping = { ...wanted, keepsDnsFiles: true } as const;
    const damaged = { [path]: `${text}# not read yet\n` };
    expect(planDns(keeping, { ...written, ...stuck, dnsFiles: damaged })).toEqual([]);
    expect(planDns({ ...keeping, dns: null }, { ...written, ...stuck })).toEqual([]);
    const files = { program: 'dnsmasq', texts: { [path]: null } };
    expect(planDns({ ...wanted, dns: null }, { ...written, ...stuck })).toMatchObject([{ do: 'revert-dns', files }]);
    expect(planDns({ ...wanted, dns: null }, { ...bareHost, ...stuck })).toEqual([]);
    expect(planDnsRemoval('cpn0', { ...written, ...stuck }, 'taken back')).toMatchObject([{ do: 'revert-dns', files }]);
    // The file of another program is not in use.
    const [moved] = planDns(keeping, { ...written, dns: { ...stuck.dns, program: 'unbound' } });
    expect(moved).toMatchObject({ do: 'revert-dns', files });
  });

  test('follows the host to another resolver', () => {
    const moved: Actual = { ...written, dns: { ...resolver, program: 'unbound', folder: '/etc/unbound/local.d' } };
    const steps = planDns(wanted, moved);
    expect(steps).toMatchObject([
      { do: 'revert-dns', files: { program: 'dnsmasq', texts: { [path]: null } } },
      { do: 'set-dns', files: { program: 'unbound' } },
    ]);
    expect(planDns(wanted, simulate(moved, steps))).toEqual([]);
    const resolved: Actual = {
      ...written,
      dns: { program: 'systemd-resolved', own: null, others: [], isServing: false },
    };
    const back = planDns(wanted, resolved);
    expect(back).toMatchObject([
      { do: 'revert-dns', files: { program: 'dnsmasq', texts: { [path]: null } } },
      { do: 'set-dns', link: 'cpn0' },
    ]);
    expect(planDns(wanted, simulate(resolved, back))).toEqual([]);
  });

  test('stays while no resolver is found, until the network is left', () => {
    const unknown: Actual = { ...written, dns: null };
    expect(planDns({ ...wanted, dns: null }, unknown)).toEqual([]);
    expect(planDnsRemoval('cpn0', unknown, 'taken back')).toMatchObject([{ files: { program: 'dnsmasq' } }]);
  });
});
