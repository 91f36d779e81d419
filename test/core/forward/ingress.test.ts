import { describe, expect, it } from 'vitest';
import { findIngresses, type HostForwarding, noForwarding } from '../../../src/core/forward/ingress.ts';
import type { Actual, HostLink } from '../../../src/core/host-state/actual.ts';
import type { OwnedResource, Receipt } from '../../../src/core/host-state/receipt.ts';
import { plan } from '../../../src/core/reconcile/plan.ts';
import { planCleanup } from '../../../src/core/reconcile/plan-cleanup.ts';
import { dropReverted, recordSteps } from '../../../src/core/reconcile/record-receipt.ts';
import { bare, desireFor, dialled, network, peer, prefix, underlay, usualConstraints } from '../samples.ts';
import { simulate } from '../simulate.ts';

const now = 1_800_000_000;
const lan = prefix('192.168.50.0/24');
const self = peer(1, { type: 'connector', endpoint: dialled(1) });
const map = network([self], { routes: [lan] });
/** Interfaces of the kind that any program may make. */
const linksOf = (...names: string[]) => names.map((name) => ({ name, kind: 'other' as HostLink['kind'] }));
const covering = {
  ...underlay,
  connected: [...underlay.connected, { prefix: lan, link: 'eth1' }],
  routed: [],
  links: linksOf('eth0', 'eth1'),
};
const key = (link: string) => `net.ipv4.conf.${link}.forwarding`;
const off = { 'net.ipv4.ip_forward': '0', [key('eth0')]: '0', [key('eth1')]: '0' };
const on = { 'net.ipv4.ip_forward': '1', [key('eth0')]: '1', [key('eth1')]: '1' };
const router: Actual = { ...bare, underlay: covering, sysctls: off };

/** A pass: what is desired of this host, the steps to there, what it is then, and what is written down. */
function pass(actual: Actual, receipt: Receipt, routes = [lan], others: HostForwarding['others'] = []) {
  const forwarding = { sysctls: actual.sysctls, receipt, others, hasNft: true };
  const here = { ...usualConstraints, underlay: actual.underlay };
  const desired = desireFor(self, { ...map, routes }, { forwarding }, here);
  const steps = plan(desired, actual, now);
  const noted = recordSteps(receipt, steps, actual);
  return { desired, steps, actual: simulate(actual, steps), noted, receipt: dropReverted(noted, steps) };
}

const changesOf = ({ steps }: ReturnType<typeof pass>) =>
  steps
    .flatMap(({ changes }) => changes)
    .map(({ kind, target, after }) => `${kind} ${target} ${kind === 'sysctl' ? after : ''}`);
const closedOf = ({ desired }: ReturnType<typeof pass>) => desired.ingress.map(({ link, closed }) => [link, closed]);

describe('the forwarding of a connector', () => {
  it('is turned on for its tunnel and the interface of its LAN, after the packet rules; never for the whole host', () => {
    const first = pass(router, []);
    const keys = first.steps.flatMap((step) => (step.do === 'set-sysctl' ? [`${step.key}=${step.value}`] : [step.do]));
    expect(keys.filter((each) => /firewall|forward/.test(each))).toEqual([
      'set-firewall',
      `${key('eth1')}=1`,
      `${key('cpn0')}=1`,
    ]);
    expect(first.actual.sysctls).toMatchObject({ ...off, [key('eth1')]: '1', [key('cpn0')]: '1' });
    expect(closedOf(first)).toEqual([['eth1', ['eth0', 'eth1']]]);
  });

  it('stays closed to the interfaces that were there, and to no later one', () => {
    const first = pass(router, []);
    const later = { ...first.actual, underlay: { ...covering, links: [...covering.links, ...linksOf('docker0')] } };
    const second = pass(later, first.receipt);
    expect(second.steps).toEqual([]);
    expect(closedOf(second)).toEqual(closedOf(first));
  });

  it('is closed to a network card that comes later, as at boot, and to a later uplink', () => {
    const first = pass(router, []);
    const card = { name: 'eth2', kind: 'card' as const };
    const later = { ...covering, links: [...covering.links, ...linksOf('ppp0', 'tun0'), card], uplinks: ['ppp0'] };
    const second = pass({ ...first.actual, underlay: later }, first.receipt);
    expect(closedOf(second)).toEqual([['eth1', ['eth0', 'eth1', 'eth2', 'ppp0']]]);
    expect(changesOf(second)).toEqual(['firewall inet cpn_cpn0 ']);
  });

  it('is left to others where everything forwards, from the beginning or later', () => {
    const before = pass({ ...router, sysctls: on }, []);
    expect(closedOf(before)).toEqual([['eth1', null]]);
    expect(changesOf(before).filter((each) => each.startsWith('sysctl') && !each.includes('cpn0'))).toEqual([]);
    const first = pass(router, []);
    const docker = { ...first.actual, sysctls: { ...first.actual.sysctls, ...on } };
    const second = pass(docker, first.receipt);
    expect(closedOf(second)).toEqual([['eth1', null]]);
    expect(changesOf(second)).toEqual(['firewall inet cpn_cpn0 ']);
    expect(planCleanup(second.receipt, second.actual).map((step) => step.do)).toEqual([
      'delete-link',
      'remove-firewall',
    ]);
    // And back again, which the kernel writes into every interface.
    const third = pass(
      { ...second.actual, sysctls: { ...second.actual.sysctls, ...off, [key('cpn0')]: '0' } },
      second.receipt,
    );
    expect(third.actual.sysctls).toMatchObject({ ...off, [key('eth1')]: '1', [key('cpn0')]: '1' });
    expect(closedOf(third)).toEqual([['eth1', ['eth0', 'eth1']]]);
  });

  it('is left alone where one interface was on before', () => {
    const first = pass({ ...router, sysctls: { ...off, [key('eth1')]: '1' } }, []);
    expect(closedOf(first)).toEqual([['eth1', null]]);
    expect(first.receipt.filter(({ made }) => made === 'sysctl')).toEqual([]);
  });

  it('follows the routes of the host, and closes what it opened', () => {
    const first = pass(router, []);
    const moved = {
      ...covering,
      connected: [...underlay.connected, { prefix: lan, link: 'eth2' }],
      links: linksOf('eth0', 'eth1', 'eth2'),
    };
    const sysctls = { ...first.actual.sysctls, [key('eth2')]: '0' };
    const second = pass({ ...first.actual, underlay: moved, sysctls }, first.receipt);
    expect(changesOf(second)).toEqual([
      `sysctl ${key('eth1')} 0`,
      'firewall inet cpn_cpn0 ',
      `sysctl ${key('eth2')} 1`,
    ]);
    // Until it is done, it is written down.
    expect(JSON.stringify(second.noted)).toContain(key('eth1'));
    expect(JSON.stringify(second.receipt)).not.toContain(key('eth1'));
  });

  it('uses one interface for both where there is one', () => {
    const only = { ...underlay, routed: [], links: linksOf('eth0') };
    const first = pass(
      { ...router, underlay: only, sysctls: { 'net.ipv4.ip_forward': '0', [key('eth0')]: '0' } },
      [],
      [prefix('0.0.0.0/0')],
    );
    expect(closedOf(first)).toEqual([['eth0', ['eth0']]]);
  });

  it('leaves traffic between two ports of a bridge to the bridge', () => {
    const bridge = { name: 'eth1', kind: 'bridge' as const };
    const first = pass({ ...router, underlay: { ...covering, links: [...linksOf('eth0'), bridge] } }, []);
    expect(closedOf(first)).toEqual([['eth1', ['eth0']]]);
  });

  it('is recorded with the interfaces of now, if it was turned off since it was recorded', () => {
    const former: OwnedResource = {
      ...{ made: 'sysctl', key: key('eth1'), before: '0', after: '1' },
      opening: { link: 'eth1', all: '0', links: ['gone0'] },
    };
    const find = (value: string) =>
      findIngresses([lan], covering, { ...noForwarding, sysctls: { [key('eth1')]: value }, receipt: [former] })
        .ingress[0];
    expect(find('1')?.opening).toEqual(former.opening);
    expect(find('0')?.opening.links).toEqual(covering.links.map(({ name }) => name));
    expect(find('0')?.closed).not.toContain('gone0');
  });

  it('keeps what comes in by a bridge from every other bridge', () => {
    const bridges = ['eth1', 'br0'].map((name) => ({ name, kind: 'bridge' as const }));
    const first = pass({ ...router, underlay: { ...covering, links: [...linksOf('eth0'), ...bridges] } }, []);
    expect(closedOf(first)).toEqual([['eth1', ['br0', 'eth0']]]);
  });

  it('stays on where a route has moved, and with it all, while another connector of this host may need it', () => {
    const first = pass(router, []);
    const moved = { ...covering, connected: [{ prefix: lan, link: 'eth2' }], links: linksOf('eth0', 'eth1', 'eth2') };
    const sysctls = { ...first.actual.sysctls, [key('eth2')]: '0' };
    const find = (isConnector: boolean) => {
      const forwarding = { ...noForwarding, sysctls, receipt: first.receipt, others: [{ link: 'cpn2', isConnector }] };
      const { ingress, unneeded } = findIngresses([lan], moved, forwarding);
      return [ingress.map(({ link }) => link), unneeded];
    };
    expect(find(true)).toEqual([['eth1', 'eth2'], []]);
    expect(find(false)).toEqual([['eth2'], ['eth1']]);

    const whole: OwnedResource = { made: 'sysctl', key: 'net.ipv4.ip_forward', before: '0', after: '1' };
    const reverts = (forwards: Readonly<Record<string, string>>, isConnector: boolean) =>
      findIngresses([lan], covering, {
        ...{ ...noForwarding, sysctls: forwards, receipt: [whole] },
        others: [{ link: 'cpn2', isConnector }],
      }).revertsAll;
    expect([reverts(on, true), reverts(on, false), reverts(off, false)]).toEqual([false, true, false]);
  });

  it('keeps clear of the tunnels of other networks, into which it forwards only where these are connectors too', () => {
    const links = linksOf('eth0', 'eth1', 'cpn1', 'cpn2');
    const withTunnels = { ...covering, links, routed: [{ prefix: prefix('172.20.0.0/14'), link: 'cpn1' }] };
    const others = [
      { link: 'cpn1', isConnector: false },
      { link: 'cpn2', isConnector: true },
    ];
    const first = pass({ ...router, underlay: withTunnels }, [], [lan, prefix('172.20.0.0/14')], others);
    expect(closedOf(first)).toEqual([['eth1', ['cpn1', 'eth0', 'eth1']]]);
  });

  it('goes off before the packet rules are loaded where these are gone, and on again after them', () => {
    const first = pass(router, []);
    const second = pass({ ...first.actual, firewall: null }, first.receipt);
    const keys = second.steps.map((step) => (step.do === 'set-sysctl' ? `${step.key}=${step.value}` : step.do));
    expect(keys).toEqual([
      `${key('cpn0')}=0`,
      `${key('eth1')}=0`,
      'set-firewall',
      `${key('eth1')}=1`,
      `${key('cpn0')}=1`,
    ]);
    expect(changesOf(second)).toEqual(['firewall inet cpn_cpn0 ']);
    expect(second.receipt).toBe(first.receipt);
  });

  it('that an earlier version turned on as a whole is turned off where nothing else can rely on it', () => {
    const old: OwnedResource = { made: 'sysctl', key: 'net.ipv4.ip_forward', before: '0', after: '1' };
    const up = pass(router, []).actual;
    const former: Actual = { ...up, sysctls: { ...up.sysctls, ...on } };
    const alone = pass(former, [{ made: 'firewall', link: 'cpn0' }, old]);
    expect(changesOf(alone)).toContain('sysctl net.ipv4.ip_forward 0');
    expect(alone.actual.sysctls).toMatchObject({ ...off, [key('eth1')]: '1', [key('cpn0')]: '1' });
    expect(JSON.stringify(alone.receipt)).not.toContain('ip_forward"');
    expect(pass(alone.actual, alone.receipt).steps).toEqual([]);
    const docker = { ...former, underlay: { ...covering, links: [...linksOf('docker0'), ...covering.links] } };
    const withDocker = pass(docker, [old]);
    expect(withDocker.actual.sysctls).toMatchObject(on);
    expect(withDocker.receipt).toContainEqual(old);
    // After a reboot, another program turned it on.
    expect(recordSteps([old], [], { ...former, sysctls: off })).toEqual([]);
  });
});

describe('a host that is no connector', () => {
  const laptop = peer(2);
  const desire = (forwarding: Partial<HostForwarding>) =>
    desireFor(laptop, network([self, laptop]), { forwarding: { ...noForwarding, ...forwarding } });
  const up = (sysctls: Actual['sysctls']): Actual => {
    const made = simulate(router, plan(desire({}), router, now));
    return { ...made, sysctls: { ...made.sysctls, ...sysctls } };
  };

  it('forwards nothing that comes out of the tunnel, whatever interfaces are set to when they are made', () => {
    expect(desire({ hasNft: true }).firewall?.rules.map(({ name }) => name)).toEqual([
      'refuse-neighbours',
      'refuse-other-destinations',
      'refuse-family',
    ]);
    const changed = up({ [key('cpn0')]: '1' });
    expect(plan(desire({}), changed, now)).toMatchObject([{ do: 'set-sysctl', key: key('cpn0'), value: '0' }]);
    expect(plan(desire({}), up({}), now)).toEqual([]);
    // A container has them read-only.
    expect(plan(desire({}), { ...changed, isSealed: true }, now)).toEqual([]);
  });

  it('lets containers answer and call out where it forwards, and nothing else, if there is a tool for it', () => {
    const desired = desire({ hasNft: true, sysctls: on });
    expect(desired.firewall?.rules.map(({ name }) => name)).toEqual([
      'refuse-neighbours',
      'refuse-other-addresses',
      'refuse-other-addresses-untracked',
      'refuse-redirected',
      'refuse-family-begun',
      'refuse-family-untracked',
      'accept-published',
      'accept-local-answers',
      'refuse-rest',
    ]);
    const steps = plan(desired, up({ ...on, [key('cpn0')]: '1' }), now);
    expect(steps.map((step) => (step.do === 'set-sysctl' ? `${step.key}=${step.value}` : step.do))).toEqual([
      `${key('cpn0')}=0`,
      'set-firewall',
      `${key('cpn0')}=1`,
    ]);
    expect(desire({ hasNft: false, sysctls: on }).firewall).toBeNull();
  });
});

it('odd names of interfaces are left out', () => {
  const odd = {
    ...covering,
    connected: [{ prefix: lan, link: 'e"; drop' }],
    links: linksOf('eth0', 'e"; drop', 'br*'),
  };
  expect(findIngresses([lan], odd, noForwarding).ingress).toEqual([]);
  const sure = findIngresses([lan], { ...odd, connected: covering.connected }, noForwarding).ingress;
  expect(sure.map(({ closed }) => closed)).toEqual([['eth0', 'eth1']]);
});
