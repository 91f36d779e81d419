import { describe, expect, it } from 'vitest';
import { leaveNetworks } from '../../../../src/app/leave/leave.ts';
import { takeDown } from '../../../../src/app/networks/down.ts';
import { describeEvaluation } from '../../../../src/app/problems/describe-evaluation.ts';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../../src/app/reconcile/state-update.ts';
import { CommandFailed } from '../../../../src/core/errors/index.ts';
import type { DomainReport } from '../../../../src/core/names/split-dns.ts';
import { settingsOf } from '../../../../src/core/reconcile/plan-dns.ts';
import type { Step } from '../../../../src/core/reconcile/step.ts';
import { noNotes } from '../../../../src/store/notes.ts';
import type { Joined } from '../../../../src/store/state/state.ts';
import { address, bare, dialled, keyPair, options, peer, prefix } from '../../../core/samples.ts';
import { simulate } from '../../../core/simulate.ts';
import { joinedTo, mapAt } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';

const lan = prefix('192.168.50.0/24');
const server = address('192.168.50.53');
const edge = peer(2, { name: 'edge', type: 'connector', endpoint: dialled(2), routes: null });
const routeDns = [{ route: lan, servers: [server], domains: ['corp.example'] }];
const map = mapAt('"1"', [edge], { routes: [lan], routeDns });
const dns = { servers: [{ address: server, port: 53 }], domains: ['50.168.192.in-addr.arpa', 'corp.example'] };
const service = { url: 'https://cp.service.example', insecureHttp: false };
const confirming = { withinMs: 20_000 };

/** A host with systemd-resolved, in a network with a domain behind a route. */
async function startHost(changes: Partial<Joined> = {}): Promise<{ simulated: SimulatedHost; warnings: string[] }> {
  const simulated = await SimulatedHost.with(joinedTo(map, { service, ...changes }));
  simulated.actual = { ...bare, dns: { program: 'systemd-resolved', own: null, others: [], isServing: false } };
  simulated.dnsRecords = { 'cp.service.example': [address('203.0.113.1')] };
  simulated.onHandshakeTrigger = () => {};
  const warnings: string[] = [];
  simulated.tools.warn = (text) => void warnings.push(text);
  return { simulated, warnings };
}
const run = ({ tools }: SimulatedHost) => passNetwork(tools, 'cpn0', noUpdate, confirming);
async function describeDomains({ tools }: SimulatedHost): Promise<readonly DomainReport[]> {
  const evaluation = await evaluateNetwork(tools, (await tools.store.read('cpn0')) as Joined);
  return describeEvaluation(evaluation, noNotes, 0).domains;
}
const states = async (simulated: SimulatedHost) =>
  (await describeDomains(simulated)).map(({ domain, state }) => `${domain} ${state}`);
async function reasons(simulated: SimulatedHost): Promise<(string | null)[]> {
  const domains = await describeDomains(simulated);
  return domains.filter(({ route }) => route !== null).map(({ reason }) => reason);
}

describe('a pass sets the DNS servers of the interface', () => {
  it('once, and down removes them', async () => {
    const { simulated, warnings } = await startHost();
    const pass = await run(simulated);
    expect(pass?.changes.filter(({ kind }) => kind === 'dns')).toHaveLength(1);
    expect(simulated.linkDns).toEqual(settingsOf(dns));
    expect((await run(simulated))?.changes).toEqual([]);
    expect(await reasons(simulated)).toEqual([null]);
    expect(warnings).toEqual([]);
    await takeDown(simulated.tools);
    expect(simulated.linkDns).toBeNull();
    expect(await simulated.state()).not.toHaveProperty('ownsDns');
  });

  it('but not for a public suffix', async () => {
    const entries = [{ route: lan, servers: [server], domains: ['co.uk', 'corp.example'] }];
    const state = joinedTo({ ...map, routeDns: entries });
    const { simulated } = await startHost({ membership: state.membership });
    await run(simulated);
    expect(await reasons(simulated)).toEqual([expect.stringContaining('public suffix'), null]);
    expect(simulated.linkDns).toEqual(settingsOf(dns));
  });

  it('after it saved that they are ours', async () => {
    const { simulated } = await startHost();
    const saved: unknown[] = [];
    const apply = simulated.tools.host.apply;
    simulated.tools.host.apply = async (step) => {
      if (step.do === 'set-dns') saved.push((await simulated.state()).ownsDns);
      await apply(step);
    };
    await run(simulated);
    expect(saved).toEqual([true]);
  });

  it('not over those of another program, which it leaves there', async () => {
    const { simulated } = await startHost();
    const theirs = { ...settingsOf(dns), servers: ['203.0.113.99'] };
    simulated.actual = {
      ...simulated.actual,
      dns: { program: 'systemd-resolved', own: theirs, others: [], isServing: false },
    };
    await run(simulated);
    expect(simulated.linkDns).toEqual(theirs);
    expect(await reasons(simulated)).toEqual(['another program has set DNS servers on the interface']);
    await takeDown(simulated.tools);
    expect(simulated.linkDns).toEqual(theirs);
  });

  it('over its own after an older version wrote the state', async () => {
    const { simulated } = await startHost();
    await run(simulated);
    const { ownsDns: _, ...older } = await simulated.state();
    await simulated.tools.store.write(older);
    const settings = settingsOf(dns);
    const before = { ...settings, servers: ['10.77.0.1:553', ...settings.servers], domains: ['~former.example'] };
    simulated.actual = {
      ...simulated.actual,
      dns: { program: 'systemd-resolved', own: before, others: [], isServing: false },
    };
    await run(simulated);
    expect(simulated.linkDns).toEqual(settings);
    expect(await reasons(simulated)).toEqual([null]);
  });

  it('not without the option, and removes them with it', async () => {
    const { simulated } = await startHost();
    await run(simulated);
    const state = await simulated.state();
    await simulated.tools.store.write({ ...state, options: { ...options, dns: false } });
    await run(simulated);
    expect(simulated.linkDns).toBeNull();
    expect(await reasons(simulated)).toEqual(['this host takes none (--no-dns)']);
    expect(await states(simulated)).toEqual(['office.cpn.internal refused', 'corp.example refused']);
  });

  it('not without systemd-resolved', async () => {
    const { simulated } = await startHost();
    simulated.actual = { ...simulated.actual, dns: null };
    expect((await run(simulated))?.changes.map(({ kind }) => kind)).not.toContain('dns');
    expect(await reasons(simulated)).toEqual([expect.stringContaining('systemd-resolved')]);
  });

  it('if a DHCP server gave the domain as a search domain, but not if another VPN has it', async () => {
    const { simulated } = await startHost();
    const { underlay } = simulated.actual;
    const others = [{ domain: 'corp.example', link: 'eth0', isSearch: true as const }];
    simulated.actual = {
      ...simulated.actual,
      underlay: { ...underlay, uplinks: ['eth0'] },
      dns: { program: 'systemd-resolved', own: null, others, isServing: false },
    };
    await run(simulated);
    expect(simulated.linkDns).toEqual(settingsOf(dns));
    simulated.actual = { ...simulated.actual, underlay: { ...underlay, uplinks: ['eth1'] } };
    await run(simulated);
    expect(simulated.linkDns).toBeNull();
    expect(await reasons(simulated)).toEqual(['the interface eth0 has it']);
  });

  it('not for a domain that contains the control plane', async () => {
    const { simulated } = await startHost({ service: { ...service, url: 'https://cp.corp.example' } });
    await run(simulated);
    expect(simulated.linkDns).toBeNull();
    expect(await reasons(simulated)).toEqual(['it contains cp.corp.example, which this host needs for the tunnel']);
  });

  it('not for a domain that contains what another network needs', async () => {
    const { simulated } = await startHost();
    const other = joinedTo(mapAt('"1"', []), { service: { ...service, url: 'https://cp.corp.example' } });
    await simulated.tools.store.write({ ...other, interface: 'cpn1' });
    await run(simulated);
    expect(simulated.linkDns).toBeNull();
    expect(await reasons(simulated)).toEqual(['it contains cp.corp.example, which this host needs for the tunnel']);
  });

  it.each([
    ['an origin', 'origin', 0, null],
    ['a connector', 'connector', 0, 'it contains vpn.corp.example, which this host needs for the tunnel'],
    ['a connector of a network that was joined later', 'connector', 1, null],
  ] as const)('for a domain with the endpoint of %s, or not', async (_, type, later, reason) => {
    const { simulated } = await startHost();
    const { createdAt } = await simulated.state();
    const dialled = { host: 'vpn.corp.example', port: 51820 };
    const other = joinedTo(mapAt('"1"', [peer(3, { name: 'far', type, endpoint: dialled })]), { service });
    const joined = new Date(Date.parse(createdAt) + later).toISOString();
    await simulated.tools.store.write({ ...other, interface: 'cpn1', createdAt: joined });
    await run(simulated);
    expect(await reasons(simulated)).toEqual([reason]);
  });

  it('and the tunnel is up if that fails', async () => {
    const { simulated, warnings } = await startHost();
    simulated.refusesStep = (step) => step.do === 'set-dns';
    await run(simulated);
    expect(simulated.actual.link?.up).toBe(true);
    expect(warnings).toEqual(['set-dns exited with 1: no']);
    simulated.refusesStep = () => false;
    await run(simulated);
    expect(simulated.linkDns).toEqual(settingsOf(dns));
  });

  it('from the wg-quick text of another service', async () => {
    const { routeDns: _, ...plain } = map;
    const { membership, ...rest } = joinedTo(plain, { service });
    const text = { dns: [server, '203.0.113.53', 'corp.example'], remarks: [] };
    const { simulated } = await startHost({ ...rest, membership: { ...membership, text } });
    await run(simulated);
    expect(simulated.linkDns).toEqual(settingsOf(dns));
  });
});

describe('a host that can no longer resolve a name which it needs', () => {
  /** The name resolves except while the servers are set, until `repaired`. */
  async function startBroken() {
    const { simulated, warnings } = await startHost();
    const repair = { isDone: false };
    const resolve = simulated.tools.host.resolve;
    simulated.tools.host.resolve = async (name, deadline) =>
      !repair.isDone && simulated.linkDns ? [] : resolve(name, deadline);
    return { simulated, warnings, repair };
  }

  it('goes back, reports that, and tries again later', async () => {
    const { simulated, warnings, repair } = await startBroken();
    await run(simulated);
    expect(simulated.actual).toMatchObject({ link: { up: true }, dns: { own: null } });
    expect(warnings).toEqual([
      'the DNS servers of cpn0 were removed: with 192.168.50.53, cp.service.example did not resolve',
    ]);
    expect(await reasons(simulated)).toEqual(['with its DNS server, cp.service.example did not resolve on this host']);
    expect((await run(simulated))?.changes).toEqual([]);
    expect(warnings).toHaveLength(1);
    simulated.seconds += 601;
    repair.isDone = true;
    await run(simulated);
    expect(simulated.linkDns).toEqual(settingsOf(dns));
    expect(await simulated.state()).not.toHaveProperty('refusedDns');
  });

  it('waits for a resolver that is slow to answer', async () => {
    const { simulated, warnings, repair } = await startBroken();
    const { sleep } = simulated.tools;
    simulated.tools.sleep = async (milliseconds, signal) => {
      repair.isDone = true;
      await sleep(milliseconds, signal);
    };
    await run(simulated);
    expect(simulated.linkDns).toEqual(settingsOf(dns));
    expect(warnings).toEqual([]);
  });

  it('sets the servers if the name did not resolve before', async () => {
    const { simulated } = await startHost();
    simulated.dnsRecords = {};
    await run(simulated);
    expect(simulated.linkDns).toEqual(settingsOf(dns));
  });
});

describe('a host with dnsmasq', () => {
  const path = '/etc/dnsmasq.d/cpn-cpn0.conf';
  /** The daemon serves names, because its listener runs in no pass here. */
  async function startDnsmasq(changes: Partial<Joined> = {}, isUsed = () => true) {
    const { simulated, warnings } = await startHost(changes);
    const settings = { own: null, isRecent: false, folder: '/etc/dnsmasq.d', trouble: null, others: [] };
    simulated.actual = { ...bare, dns: { program: 'dnsmasq', ...settings, isServing: true }, dnsFiles: {} };
    const { resolve } = simulated.tools.host;
    simulated.tools.host.resolve = async (name, deadline) =>
      name.endsWith('.cpn.internal') && isUsed() ? [address('10.77.0.1')] : resolve(name, deadline);
    const set = (change: {
      isServing?: boolean;
      isRecent?: boolean;
      trouble?: string | null;
      unstartable?: string;
      own?: null;
    }) => {
      const { dns } = simulated.actual;
      if (dns?.program === 'dnsmasq') simulated.actual = { ...simulated.actual, dns: { ...dns, ...change } };
    };
    return { simulated, warnings, set, text: () => simulated.actual.dnsFiles?.[path] };
  }

  it('gets our file once, and down removes it', async () => {
    const { simulated, text } = await startDnsmasq();
    await run(simulated);
    expect(text()).toMatch(/server=\/\S+\.cpn\.internal\/127\.77\.0\.\d+#553\n/);
    expect(text()).toContain('server=/corp.example/127.77.0');
    expect(await reasons(simulated)).toEqual([null]);
    expect(await simulated.state()).toMatchObject({ ownsDns: true });
    expect((await run(simulated))?.changes).toEqual([]);
    await takeDown(simulated.tools);
    expect(simulated.actual.dnsFiles).toEqual({});
    expect(await simulated.state()).not.toHaveProperty('ownsDns');
  });

  it('gets it only once the daemon serves names, and keeps it from then on', async () => {
    const { simulated, set, text } = await startDnsmasq();
    set({ isServing: false });
    await run(simulated);
    expect(simulated.actual.dnsFiles).toEqual({});
    // The daemon may run, and serve names in a moment.
    const reason = 'the daemon does not serve names yet: systemctl enable --now cpn, or cpn run; if it runs, its log';
    expect(await reasons(simulated)).toEqual([expect.stringContaining(reason)]);
    expect(await states(simulated)).toEqual(['office.cpn.internal waiting', 'corp.example waiting']);
    set({ isServing: true });
    await run(simulated);
    const written = text();
    set({ isServing: false });
    expect((await run(simulated))?.changes).toEqual([]);
    expect([text(), await reasons(simulated)]).toEqual([
      written,
      [expect.stringContaining('systemctl enable --now cpn')],
    ]);
  });

  it('has none while the network is down, and that is the reason', async () => {
    const { simulated, set } = await startDnsmasq();
    await run(simulated);
    for (const isServing of [true, false]) {
      await takeDown(simulated.tools);
      set({ isServing });
      const domains = await describeDomains(simulated);
      expect(domains.map(({ state, reason }) => `${state}: ${reason}`)).toEqual(
        Array(2).fill('waiting: the network is down'),
      );
    }
  });

  it('gets other domains once a minute at most, but its own file back at once', async () => {
    const { simulated, set, text } = await startDnsmasq();
    await run(simulated);
    set({ isRecent: true });
    const { membership, ...state } = await simulated.state();
    const changed = { ...map, routeDns: [{ route: lan, servers: [server], domains: ['corp.example', 'x.example'] }] };
    await simulated.tools.store.write({ ...state, membership: { ...membership, map: changed } } as Joined);
    const before = text();
    expect((await run(simulated))?.changes).toEqual([]);
    expect(await reasons(simulated)).toEqual([null, 'it follows in a minute: each change may restart the resolver']);
    expect((await states(simulated)).at(-1)).toBe('x.example waiting');
    for (const damaged of [before?.replaceAll('127.77.0', '192.0.2'), undefined]) {
      simulated.actual = simulate(simulated.actual, [
        {
          do: 'revert-dns',
          link: 'cpn0',
          files: { program: 'dnsmasq', texts: { [path]: damaged ?? null } },
          changes: [],
        },
      ]);
      await run(simulated);
      expect(text()).toContain('server=/x.example/127.77.0');
    }
    expect(await reasons(simulated)).toEqual([null, null]);
  });

  it('loses it if a needed name no longer resolves', async () => {
    const { simulated, warnings } = await startDnsmasq();
    const resolve = simulated.tools.host.resolve;
    simulated.tools.host.resolve = async (name, deadline) =>
      path in (simulated.actual.dnsFiles ?? {}) ? [] : resolve(name, deadline);
    await run(simulated);
    expect(simulated.actual.dnsFiles).toEqual({});
    expect(warnings).toEqual([expect.stringContaining('cp.service.example did not resolve')]);
    expect((await run(simulated))?.changes).toEqual([]);
  });

  it('is asked again only later if it did not take the file', async () => {
    const { simulated, warnings } = await startDnsmasq();
    simulated.refusesStep = (step) => step.do === 'set-dns';
    // Not made, so that the log has no such change.
    expect((await run(simulated))?.changes.filter(({ kind }) => kind === 'dns')).toEqual([]);
    expect(await reasons(simulated)).toEqual(['set-dns exited with 1: no']);
    await run(simulated);
    expect(warnings).toHaveLength(1);
    simulated.refusesStep = () => false;
    simulated.seconds += 601;
    await run(simulated);
    expect(Object.keys(simulated.actual.dnsFiles ?? {})).toEqual([path]);
    expect(await reasons(simulated)).toEqual([null]);
  });

  it('loses it if it did not use it, and gets it again only later', async () => {
    const used = { now: false };
    const { simulated, warnings } = await startDnsmasq({}, () => used.now);
    await run(simulated);
    expect(simulated.actual.dnsFiles).toEqual({});
    expect(warnings).toEqual([expect.stringMatching(/^dnsmasq did not use its new file: \S+\.cpn\.internal does not/)]);
    expect(await reasons(simulated)).toEqual(warnings);
    used.now = true;
    expect((await run(simulated))?.changes).toEqual([]);
    simulated.seconds += 601;
    await run(simulated);
    expect(Object.keys(simulated.actual.dnsFiles ?? {})).toEqual([path]);
  });

  it('loses it with the network, also if another program has the interface', async () => {
    const { simulated } = await startDnsmasq();
    await run(simulated);
    const { link, device } = simulated.actual;
    const foreign = {
      link: link && { ...link, alias: 'of another program' },
      device: device && { ...device, publicKey: keyPair(77).publicKey },
    };
    simulated.actual = { ...simulated.actual, ...foreign };
    await takeDown(simulated.tools);
    expect([simulated.actual.link, simulated.actual.dnsFiles]).toEqual([foreign.link, {}]);
    expect(await simulated.state()).not.toHaveProperty('ownsDns');
  });

  it('is taken back later if it could not be removed, as the status shows', async () => {
    const { simulated, set } = await startDnsmasq();
    const left = async () => {
      const evaluation = await evaluateNetwork(simulated.tools, await simulated.state());
      return describeEvaluation(evaluation, noNotes, 0).warnings.filter((each) => each.includes(path));
    };
    expect(await left()).toEqual([]);
    await run(simulated);
    simulated.refusesStep = (step) => step.do === 'revert-dns';
    await takeDown(simulated.tools);
    expect(await simulated.state()).toMatchObject({ ownsDns: true });
    const again = '"cpn down cpn0", or "cpn leave cpn0", tries again';
    expect(await left()).toEqual([`${path} is left, which dnsmasq reads; ${again}`]);
    // The file is removed, but not read.
    simulated.actual = { ...simulated.actual, dnsFiles: {} };
    set({ unstartable: '/etc/x changed after dnsmasq started; restart it: systemctl restart dnsmasq' });
    expect(await left()).toEqual([
      `dnsmasq may still use ${path}, which is removed; /etc/x changed after dnsmasq started; restart it: systemctl restart dnsmasq; then ${again}`,
    ]);
    simulated.refusesStep = () => false;
    await takeDown(simulated.tools);
    expect([await left(), simulated.actual.dnsFiles]).toEqual([[], {}]);
    expect(await simulated.state()).not.toHaveProperty('ownsDns');
  });

  it('keeps its file, and gets no other, while it could not start again', async () => {
    const { simulated, set, text } = await startDnsmasq();
    set({ unstartable: 'user=x' });
    await run(simulated);
    expect([text(), await reasons(simulated)]).toEqual([undefined, ['user=x']]);
    const { dns: found } = simulated.actual;
    if (found?.program !== 'dnsmasq') throw new Error('no dnsmasq');
    const { unstartable: _, ...startable } = found;
    simulated.actual = { ...simulated.actual, dns: startable };
    await run(simulated);
    const before = text();
    set({ unstartable: 'user=x' });
    const { membership, ...state } = await simulated.state();
    const changed = { ...map, routeDns: [{ route: lan, servers: [server], domains: ['corp.example', 'x.example'] }] };
    await simulated.tools.store.write({ ...state, membership: { ...membership, map: changed } } as Joined);
    expect((await run(simulated))?.changes).toEqual([]);
    expect([text(), await reasons(simulated)]).toEqual([before, [null, 'user=x']]);
    // Not even a damaged one, or one in a folder that its settings no longer name.
    const damaged = before?.replaceAll('127.77.0', '192.0.2') ?? '';
    simulated.actual = { ...simulated.actual, dnsFiles: { [path]: damaged } };
    set({ own: null, trouble: 'user=x' });
    expect((await run(simulated))?.changes).toEqual([]);
    expect([text(), await reasons(simulated)]).toEqual([damaged, ['user=x', 'user=x']]);
    const { options, ...rest } = await simulated.state();
    await simulated.tools.store.write({ ...rest, options: { ...options, dns: false } } as Joined);
    await run(simulated);
    expect(text()).toBeUndefined();
  });

  it('keeps the state of a network that is left until the removal of its file was read', async () => {
    const { simulated, text } = await startDnsmasq();
    await run(simulated);
    simulated.service.onRemovePeer = () => true;
    const { apply } = simulated.tools.host;
    const failing = (step: Step) => step.do === 'revert-dns';
    simulated.refusesStep = failing;
    await expect(leaveNetworks(simulated.tools)).rejects.toThrow(
      `cpn0 is not left completely: ${path} could not be removed; correct the cause in the warning, then "cpn leave cpn0" again`,
    );
    expect(text()).toBeDefined();
    // The file is removed, but not read.
    simulated.refusesStep = () => false;
    simulated.tools.host.apply = async (step) => {
      await apply(step);
      if (failing(step)) throw new CommandFailed('dnsmasq', 1, 'no');
    };
    for (let attempt = 0; attempt < 2; attempt += 1) {
      await expect(leaveNetworks(simulated.tools)).rejects.toThrow(`dnsmasq still uses ${path}, which is removed`);
      expect(await simulated.tools.store.read('cpn0')).toMatchObject({ enabled: false, ownsDns: true });
    }
    simulated.tools.host.apply = apply;
    expect(await leaveNetworks(simulated.tools)).toMatchObject([{ interface: 'cpn0' }]);
    expect([text(), await simulated.tools.store.read('cpn0')]).toEqual([undefined, null]);
  });

  describe('that did not read the removal of its file', () => {
    /** It reads no settings until `repaired`. */
    async function startOwed() {
      const { simulated, set, text } = await startDnsmasq();
      await run(simulated);
      const repair = { isDone: false };
      const { apply } = simulated.tools.host;
      simulated.refusesStep = (step) => step.do === 'set-dns' && !repair.isDone;
      simulated.tools.host.apply = async (step) => {
        await apply(step);
        if (step.do === 'revert-dns' && !repair.isDone) throw new CommandFailed('dnsmasq', 1, 'no');
      };
      const setDns = async (dns: boolean) => {
        const { refusedDns: _, ...state } = await simulated.state();
        await simulated.tools.store.write({ ...state, options: { ...options, dns } });
        return run(simulated);
      };
      const isOwed = async () => (await simulated.state()).ownsDns === true;
      const reverts = () => simulated.steps.filter((step) => step.do === 'revert-dns').length;
      return { simulated, repair, set, text, setDns, isOwed, reverts };
    }

    it('reads it later, although it refused a new file in between', async () => {
      const { simulated, repair, text, setDns, isOwed, reverts } = await startOwed();
      await setDns(false);
      expect([text(), await isOwed()]).toEqual([undefined, true]);
      await setDns(true);
      await setDns(false);
      expect(await isOwed()).toBe(true);
      repair.isDone = true;
      const before = reverts();
      await run(simulated);
      expect([reverts() - before, await isOwed()]).toEqual([1, false]);
      expect((await run(simulated))?.changes).toEqual([]);
    });

    it('reads it when the network is left', async () => {
      const { simulated, repair, setDns, reverts } = await startOwed();
      simulated.service.onRemovePeer = () => true;
      await setDns(false);
      await setDns(true);
      await expect(leaveNetworks(simulated.tools)).rejects.toThrow(`dnsmasq still uses ${path}, which is removed`);
      repair.isDone = true;
      const before = reverts();
      await leaveNetworks(simulated.tools);
      expect(reverts() - before).toBe(1);
    });

    it('reads it later, also if the state did not have the file', async () => {
      const { simulated, setDns, isOwed } = await startOwed();
      const { ownsDns: _, ...without } = await simulated.state();
      await simulated.tools.store.write(without);
      await setDns(false);
      expect(await isOwed()).toBe(true);
    });
  });

  it('has its file removed when the network is left, although it refused a change of it', async () => {
    const { simulated, text } = await startDnsmasq();
    await run(simulated);
    simulated.refusesStep = (step) => step.do === 'set-dns';
    const { membership, ...state } = await simulated.state();
    const changed = { ...map, routeDns: [{ route: lan, servers: [server], domains: ['corp.example', 'x.example'] }] };
    await simulated.tools.store.write({ ...state, membership: { ...membership, map: changed } } as Joined);
    await run(simulated);
    expect(await reasons(simulated)).toEqual([null, 'set-dns exited with 1: no']);
    await takeDown(simulated.tools);
    expect(text()).toBeUndefined();
  });

  it('that follows another program has its file removed when the network is left', async () => {
    const { simulated } = await startDnsmasq();
    await run(simulated);
    const { dns: found } = simulated.actual;
    if (found?.program !== 'dnsmasq') throw new Error('no dnsmasq');
    const unbound = { ...found, program: 'unbound' as const, folder: '/etc/unbound/unbound.conf.d', own: null };
    simulated.actual = { ...simulated.actual, dns: unbound };
    await run(simulated);
    expect(Object.keys(simulated.actual.dnsFiles ?? {})).toEqual(['/etc/unbound/unbound.conf.d/cpn-cpn0.conf']);
    await takeDown(simulated.tools);
    expect(simulated.actual.dnsFiles).toEqual({});
  });

  it('is left alone if the file cannot be changed, and gets it in the first pass that can', async () => {
    const { simulated, set } = await startDnsmasq();
    set({ trouble: 'no' });
    const pass = await run(simulated);
    expect(simulated.actual.dnsFiles).toEqual({});
    expect(await reasons(simulated)).toEqual(['no']);
    // Otherwise the file would wait for the daemon too.
    expect(pass?.evaluation?.desired.served).toMatchObject({ address: expect.stringMatching(/^127\./) });
    set({ trouble: null });
    await run(simulated);
    expect(Object.keys(simulated.actual.dnsFiles ?? {})).toEqual([path]);
  });

  it('keeps a file that cannot be changed, with the daemon behind it', async () => {
    const { simulated, warnings, set, text } = await startDnsmasq();
    await run(simulated);
    const before = text();
    set({ trouble: 'read-only' });
    const pass = await run(simulated);
    expect([pass?.changes, text(), await reasons(simulated)]).toEqual([[], before, [null]]);
    expect(pass?.evaluation?.desired.served).toMatchObject({ forwarded: [{ servers: [server] }] });
    const { membership, ...state } = await simulated.state();
    const changed = { ...map, routeDns: [{ route: lan, servers: [server], domains: ['corp.example', 'x.example'] }] };
    await simulated.tools.store.write({ ...state, membership: { ...membership, map: changed } } as Joined);
    await run(simulated);
    expect([text(), await reasons(simulated), warnings]).toEqual([before, [null, 'read-only'], []]);
    set({ trouble: null });
    await run(simulated);
    expect([text(), await reasons(simulated)]).toEqual([expect.stringContaining('x.example'), [null, null]]);
  });

  it('has a damaged file removed, and not written again, if its file cannot be changed', async () => {
    const { simulated, set, text } = await startDnsmasq();
    await run(simulated);
    const written = text() ?? '';
    simulated.actual = simulate(simulated.actual, [
      {
        do: 'revert-dns',
        link: 'cpn0',
        files: { program: 'dnsmasq', texts: { [path]: `${written}# not read yet\n` } },
        changes: [],
      },
    ]);
    set({ trouble: 'read-only' });
    expect((await run(simulated))?.changes).toEqual([]);
    simulated.actual = simulate(simulated.actual, [
      {
        do: 'revert-dns',
        link: 'cpn0',
        files: { program: 'dnsmasq', texts: { [path]: written.replaceAll('127.77.0', '192.0.2') } },
        changes: [],
      },
    ]);
    await run(simulated);
    expect([text(), await reasons(simulated)]).toEqual([undefined, ['read-only']]);
  });
});

it.each([
  [{ resolvers: [address('192.0.2.53')] }, /this host has 192\.0\.2\.53, which is no program of this host$/],
  [{ resolvers: [] }, /this host has no resolver$/],
  [
    {
      resolvers: [address('127.0.0.1')],
      stubs: [
        {
          ...{ address: address('127.0.0.1'), isListening: true, program: 'named', isStated: false },
          stated: [],
          observed: [],
        },
      ],
    },
    /this host has the local resolver 127\.0\.0\.1 \(named\)$/,
  ],
  [
    {
      resolvers: [address('127.0.0.1')],
      stubs: [
        {
          ...{ address: address('127.0.0.1'), isListening: false, program: null, isStated: false },
          stated: [],
          observed: [],
        },
      ],
    },
    /^the local resolver is not running: nothing listens at 127\.0\.0\.1, which \/etc\/resolv\.conf names; start it$/,
  ],
])('what a host would need is named: %j', async (underlay, reason) => {
  const { simulated } = await startHost();
  simulated.actual = { ...bare, dns: null, underlay: { ...bare.underlay, ...underlay } };
  expect(await reasons(simulated)).toEqual([expect.stringMatching(reason)]);
});
