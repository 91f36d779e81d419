import { describe, expect, it } from 'vitest';
import { takeDown } from '../../../../src/app/networks/down.ts';
import { describeEvaluation } from '../../../../src/app/problems/describe-evaluation.ts';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../../src/app/reconcile/state-update.ts';
import { settingsOf } from '../../../../src/core/reconcile/plan-dns.ts';
import { noNotes } from '../../../../src/store/notes.ts';
import type { Joined } from '../../../../src/store/state/state.ts';
import { address, bare, dialled, options, peer, prefix } from '../../../core/samples.ts';
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
  simulated.actual = { ...bare, dns: { own: null, others: [], isServing: false } };
  simulated.dnsRecords = { 'cp.service.example': [address('203.0.113.1')] };
  simulated.onHandshakeTrigger = () => {};
  const warnings: string[] = [];
  simulated.tools.warn = (text) => void warnings.push(text);
  return { simulated, warnings };
}
const run = ({ tools }: SimulatedHost) => passNetwork(tools, 'cpn0', noUpdate, confirming);
async function reasons({ tools }: SimulatedHost): Promise<(string | null)[]> {
  const evaluation = await evaluateNetwork(tools, (await tools.store.read('cpn0')) as Joined);
  const { domains } = describeEvaluation(evaluation, noNotes, 0);
  return domains.filter(({ route }) => route !== null).map(({ reason }) => reason);
}

describe('a pass sets the DNS servers of the interface', () => {
  it('once, and down removes them', async () => {
    const { simulated, warnings } = await startHost();
    const pass = await run(simulated);
    expect(pass?.changes.filter(({ kind }) => kind === 'dns')).toHaveLength(1);
    expect(simulated.actual.dns?.own).toEqual(settingsOf(dns));
    expect((await run(simulated))?.changes).toEqual([]);
    expect(await reasons(simulated)).toEqual([null]);
    expect(warnings).toEqual([]);
    await takeDown(simulated.tools);
    expect(simulated.actual.dns?.own).toBeNull();
    expect(await simulated.state()).not.toHaveProperty('ownsDns');
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
    simulated.actual = { ...simulated.actual, dns: { own: theirs, others: [], isServing: false } };
    await run(simulated);
    expect(simulated.actual.dns?.own).toEqual(theirs);
    expect(await reasons(simulated)).toEqual(['another program has set DNS servers on the interface']);
    await takeDown(simulated.tools);
    expect(simulated.actual.dns?.own).toEqual(theirs);
  });

  it('over its own after an older version wrote the state', async () => {
    const { simulated } = await startHost();
    await run(simulated);
    const { ownsDns: _, ...older } = await simulated.state();
    await simulated.tools.store.write(older);
    const settings = settingsOf(dns);
    const before = { ...settings, servers: ['10.77.0.1:553', ...settings.servers], domains: ['~former.example'] };
    simulated.actual = { ...simulated.actual, dns: { own: before, others: [], isServing: false } };
    await run(simulated);
    expect(simulated.actual.dns?.own).toEqual(settings);
    expect(await reasons(simulated)).toEqual([null]);
  });

  it('not without the option, and removes them with it', async () => {
    const { simulated } = await startHost();
    await run(simulated);
    const state = await simulated.state();
    await simulated.tools.store.write({ ...state, options: { ...options, dns: false } });
    await run(simulated);
    expect(simulated.actual.dns?.own).toBeNull();
    expect(await reasons(simulated)).toEqual(['this host takes none (--no-dns)']);
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
      dns: { own: null, others, isServing: false },
    };
    await run(simulated);
    expect(simulated.actual.dns?.own).toEqual(settingsOf(dns));
    simulated.actual = { ...simulated.actual, underlay: { ...underlay, uplinks: ['eth1'] } };
    await run(simulated);
    expect(simulated.actual.dns?.own).toBeNull();
    expect(await reasons(simulated)).toEqual(['the interface eth0 has it']);
  });

  it('not for a domain that contains the control plane', async () => {
    const { simulated } = await startHost({ service: { ...service, url: 'https://cp.corp.example' } });
    await run(simulated);
    expect(simulated.actual.dns?.own).toBeNull();
    expect(await reasons(simulated)).toEqual(['it contains cp.corp.example, which this host needs for the tunnel']);
  });

  it('not for a domain that contains what another network needs', async () => {
    const { simulated } = await startHost();
    const other = joinedTo(mapAt('"1"', []), { service: { ...service, url: 'https://cp.corp.example' } });
    await simulated.tools.store.write({ ...other, interface: 'cpn1' });
    await run(simulated);
    expect(simulated.actual.dns?.own).toBeNull();
    expect(await reasons(simulated)).toEqual(['it contains cp.corp.example, which this host needs for the tunnel']);
  });

  it('and the tunnel is up if that fails', async () => {
    const { simulated, warnings } = await startHost();
    simulated.refusesStep = (step) => step.do === 'set-dns';
    await run(simulated);
    expect(simulated.actual.link?.up).toBe(true);
    expect(warnings).toEqual(['set-dns exited with 1: no']);
    simulated.refusesStep = () => false;
    await run(simulated);
    expect(simulated.actual.dns?.own).toEqual(settingsOf(dns));
  });

  it('from the wg-quick text of another service', async () => {
    const { routeDns: _, ...plain } = map;
    const { membership, ...rest } = joinedTo(plain, { service });
    const text = { dns: [server, '203.0.113.53', 'corp.example'], remarks: [] };
    const { simulated } = await startHost({ ...rest, membership: { ...membership, text } });
    await run(simulated);
    expect(simulated.actual.dns?.own).toEqual(settingsOf(dns));
  });
});

describe('a host that can no longer resolve a name which it needs', () => {
  /** The name resolves except while the servers are set, until `repaired`. */
  async function startBroken() {
    const { simulated, warnings } = await startHost();
    const repair = { isDone: false };
    const resolve = simulated.tools.host.resolve;
    simulated.tools.host.resolve = async (name, deadline) =>
      !repair.isDone && simulated.actual.dns?.own ? [] : resolve(name, deadline);
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
    expect(simulated.actual.dns?.own).toEqual(settingsOf(dns));
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
    expect(simulated.actual.dns?.own).toEqual(settingsOf(dns));
    expect(warnings).toEqual([]);
  });

  it('sets the servers if the name did not resolve before', async () => {
    const { simulated } = await startHost();
    simulated.dnsRecords = {};
    await run(simulated);
    expect(simulated.actual.dns?.own).toEqual(settingsOf(dns));
  });
});
