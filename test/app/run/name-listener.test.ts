import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { describeEvaluation } from '../../../src/app/problems/describe-evaluation.ts';
import { evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate, type StateUpdate } from '../../../src/app/reconcile/state-update.ts';
import { NameListener } from '../../../src/app/run/listeners/name-listener.ts';
import { NamesNotServed } from '../../../src/core/errors/index.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import type { DnsFailure } from '../../../src/core/names/split-dns.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { address, bare, dialled, options, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const lan = prefix('192.168.50.0/24');
const edge = peer(2, { name: 'edge', type: 'connector', endpoint: dialled(2), routes: null });
const routeDns = [{ route: lan, servers: [address('192.168.50.53')], domains: ['corp.example'] }];
const map = mapAt('"1"', [edge], { routes: [lan], routeDns });

/** A host with systemd-resolved, and the listener of its one network. */
async function startHost(changes: Partial<Joined> = {}) {
  const simulated = await SimulatedHost.with(joinedTo(map, changes));
  simulated.actual = { ...bare, dns: { program: 'systemd-resolved', own: null, others: [], isServing: false } };
  simulated.onHandshakeTrigger = () => {};
  const triggers: number[] = [];
  const listener = new NameListener(simulated.tools, 'cpn0', () => void triggers.push(simulated.seconds));
  const run = async (update: StateUpdate = noUpdate) => {
    const pass = await passNetwork(simulated.tools, 'cpn0', update, { withinMs: 20_000 });
    if (pass !== null) await listener.onPass(pass);
  };
  const ask = (name: string, type = 'A') => simulated.served?.answer({ name, type });
  /** The states of domains with their reasons, and the problems with names. */
  const described = async () => {
    const evaluation = await evaluateNetwork(simulated.tools, await simulated.state());
    const { domains, problems } = describeEvaluation(evaluation, await simulated.tools.store.readNotes('cpn0'), 0);
    const codes = problems.map(({ code }) => code).filter((code) => /^domain|^names/.test(code));
    return [domains.map(({ state, reason }) => [state, reason]), codes] as const;
  };
  return { simulated, listener, triggers, run, ask, described };
}
const takenPort: NonNullable<SimulatedHost['tools']['host']['serveNames']> = async ({ address: at }) => {
  throw new NamesNotServed(at, 553, Object.assign(new Error('taken'), { code: 'EADDRINUSE' }));
};
const found = (data: string) => ({ rcode: 'NOERROR', answers: [{ data }] });

describe('the daemon', () => {
  it('serves the names of peers at its own address, and the resolver uses it from the next pass on', async () => {
    const { simulated, triggers, run, ask } = await startHost();
    await run();
    expect(simulated.served?.address).toBe('10.77.0.1');
    expect(triggers).toHaveLength(1);
    expect(simulated.linkDns?.servers).toEqual(['192.168.50.53']);
    await run();
    expect(simulated.linkDns).toMatchObject({
      servers: ['10.77.0.1:553'],
      domains: ['~0.77.10.in-addr.arpa', '~50.168.192.in-addr.arpa', '~corp.example', '~office.cpn.internal'],
    });
    await run();
    expect(triggers).toHaveLength(1);
    expect(ask('edge.office.cpn.internal')).toMatchObject(found('10.77.0.2'));
    expect(ask('2.0.77.10.in-addr.arpa', 'PTR')).toMatchObject(found('edge.office.cpn.internal'));
    expect(ask('edge.office.cpn.internal', 'AAAA')).toMatchObject({ rcode: 'NOERROR', answers: [] });
    expect(ask('none.office.cpn.internal')).toMatchObject({ rcode: 'NXDOMAIN' });
  });

  describe('queries the domain itself once three queries in 10 s failed, which decides', () => {
    /** The server answers queries for the domain itself by `failure`, and other names by what a test gives. */
    async function startFailing(failure: DnsFailure | null) {
      const { simulated, triggers, run, ask, described } = await startHost();
      const server = { failure, asked: [] as string[] };
      simulated.tools.host.queryDomain = async (servers, domain, source) => {
        server.asked.push(`${servers} ${domain} from ${source}`);
        return server.failure;
      };
      await simulated.tools.store.amendNotes('cpn0', { dnsFailures: { 'old.example': 'silent' } });
      await run();
      await run();
      const noted = async () => (await simulated.tools.store.readNotes('cpn0')).dnsFailures;
      const reply = async (each: DnsFailure | null, name = 'db.corp.example') => {
        const forwarding = ask(name);
        if (forwarding && 'servers' in forwarding) forwarding.onReply?.(each);
        await setImmediate();
      };
      const fail = async (each: DnsFailure, name?: string) => {
        for (let times = 0; times < 3; times += 1) {
          await reply(each, name);
          simulated.seconds += 5;
        }
      };
      return { simulated, triggers, run, described, server, noted, reply, fail };
    }
    const asked = '192.168.50.53 corp.example from 10.77.0.1';

    it('and not before', async () => {
      const { simulated, triggers, run, server, noted, reply } = await startFailing('silent');
      expect(await noted()).toEqual({});
      for (let times = 0; times < 4; times += 1) await reply('silent');
      simulated.seconds += 9;
      await reply(null);
      simulated.seconds += 1;
      await reply('silent');
      simulated.seconds += 20;
      await reply('REFUSED');
      await run();
      expect([triggers.length, server.asked, await noted()]).toEqual([1, [], {}]);
    });

    it.each([
      ['silent', 'its DNS server does not answer', 'silent', 'domain-silent'],
      ['REFUSED', 'its DNS server answers REFUSED', 'failing', 'domain-failing'],
      ['SERVFAIL', 'its DNS server answers SERVFAIL', 'failing', 'domain-failing'],
    ] as const)('%s, until a name is answered', async (failure, reason, state, code) => {
      const { simulated, triggers, run, described, server, noted, reply, fail } = await startFailing(failure);
      await fail('silent');
      expect([server.asked, triggers.length]).toEqual([[asked], 2]);
      await run();
      expect(await noted()).toEqual({ 'corp.example': failure });
      const [domains, codes] = await described();
      expect([domains[1], codes]).toEqual([[state, reason], [code]]);
      simulated.seconds += 60;
      await reply(null);
      expect(triggers).toHaveLength(3);
      await run();
      expect([await noted(), (await described())[1]]).toEqual([{}, []]);
    });

    it('although a program queries names that the server does not answer', async () => {
      const { triggers, run, server, noted, fail } = await startFailing(null);
      for (let times = 0; times < 3; times += 1) await fail('silent');
      await run();
      expect([server.asked, triggers.length, await noted()]).toEqual([[asked, asked, asked], 1, {}]);
    });

    it('again while queries go on, at most every 5 s, and not without queries; its answer ends the failure', async () => {
      const { simulated, run, server, noted, reply, fail } = await startFailing('silent');
      await fail('silent');
      for (let times = 0; times < 9; times += 1) await reply('silent');
      expect(server.asked).toHaveLength(2);
      simulated.seconds += 60;
      await run();
      expect(server.asked).toHaveLength(2);
      server.failure = 'SERVFAIL';
      await reply('silent');
      await run();
      expect(await noted()).toEqual({ 'corp.example': 'SERVFAIL' });
      server.failure = null;
      simulated.seconds += 5;
      await reply('silent');
      await run();
      expect([server.asked.length, await noted()]).toEqual([4, {}]);
    });

    it('for ten minutes without queries', async () => {
      const { simulated, run, noted, fail } = await startFailing('silent');
      await fail('silent');
      await run();
      expect(await noted()).toEqual({ 'corp.example': 'silent' });
      simulated.seconds += 601;
      await run();
      expect(await noted()).toEqual({});
    });

    it('unless the queries were for a reverse zone', async () => {
      const { server, fail } = await startFailing('silent');
      await fail('silent', '9.50.168.192.in-addr.arpa');
      expect(server.asked).toEqual([]);
    });

    it('unless a name was answered meanwhile', async () => {
      const { simulated, run, noted, reply, fail } = await startFailing('silent');
      const answers: (() => void)[] = [];
      simulated.tools.host.queryDomain = () => new Promise((done) => void answers.push(() => done('silent')));
      await fail('silent');
      await reply(null);
      for (const answer of answers) answer();
      await setImmediate();
      await run();
      expect([answers.length, await noted()]).toEqual([1, {}]);
    });
  });

  it('gives the resolver its former servers back if it ends during a pass', async () => {
    const { simulated, listener, run } = await startHost();
    const stop = new AbortController();
    const running = listener.run(stop.signal);
    await run();
    const pass = await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
    expect(simulated.linkDns?.servers).toEqual(['10.77.0.1:553']);
    // The signal aborts before the listeners of that pass run.
    stop.abort();
    await running;
    if (pass !== null) await listener.onPass(pass);
    await listener.onEnd();
    expect(simulated.linkDns?.servers).toEqual(['192.168.50.53']);
  });

  it('forwards the domains behind routes, and nothing else', async () => {
    const { run, ask } = await startHost();
    await run();
    for (const name of ['corp.example', 'db.Corp.Example', '9.50.168.192.in-addr.arpa']) {
      expect(ask(name)).toMatchObject({ servers: ['192.168.50.53'] });
    }
    for (const name of ['xcorp.example', 'example', 'other.cpn.internal', '9.51.168.192.in-addr.arpa']) {
      expect(ask(name)).toMatchObject({ rcode: 'REFUSED' });
    }
  });

  it('forwards a name below two domains to the servers of the longer one', async () => {
    const host = prefix('192.168.50.54/32');
    const entry = { route: host, servers: [address('192.168.50.54')], domains: ['lab.corp.example'] };
    const both = { ...map, routes: [lan, host], routeDns: [...routeDns, entry] };
    const { run, ask } = await startHost({ membership: joinedTo(both).membership });
    await run();
    expect(ask('x.lab.corp.example')).toMatchObject({ servers: ['192.168.50.54'] });
    expect(ask('xlab.corp.example')).toMatchObject({ servers: ['192.168.50.53'] });
  });

  it('serves a changed map at once, and keeps the name of a peer that was renamed', async () => {
    const { run, ask } = await startHost();
    await run();
    const newer: NetworkMap = { ...map, revision: '"2"', peers: [...map.peers, peer(3, { name: 'db' })] };
    await run({ ...noUpdate, map: newer });
    expect(ask('db.office.cpn.internal')).toMatchObject(found('10.77.0.3'));
    const renamed: NetworkMap = {
      ...map,
      name: 'headquarters',
      revision: '"3"',
      peers: [...map.peers, peer(3, { name: 'sql' })],
    };
    await run({ ...noUpdate, map: renamed });
    for (const name of ['sql', 'db']) expect(ask(`${name}.office.cpn.internal`)).toMatchObject(found('10.77.0.3'));
  });

  it('serves none on a host that takes none, and stops with the option', async () => {
    const { simulated, run } = await startHost();
    await run();
    const state = (await simulated.tools.store.read('cpn0')) as Joined;
    await simulated.tools.store.write({ ...state, options: { ...options, dns: false } });
    await run();
    expect(simulated.served).toBeNull();
    expect(simulated.linkDns).toBeNull();
  });

  it('leaves a file as it is when it ends: each change may restart the resolver', async () => {
    const { simulated, listener, run } = await startHost();
    simulated.dnsRecords = { 'peer-1.office.cpn.internal': [address('10.77.0.1')] };
    const settings = { own: null, isRecent: false, folder: '/etc/dnsmasq.d', trouble: null, others: [] };
    simulated.actual = {
      ...simulated.actual,
      ...{ dns: { program: 'dnsmasq', ...settings, isServing: false }, dnsFiles: {} },
    };
    await run();
    expect([simulated.served?.address, simulated.actual.dnsFiles]).toEqual(['127.77.0.1', {}]);
    await run();
    const { dnsFiles } = simulated.actual;
    expect(Object.values(dnsFiles ?? {}).join()).toContain('127.77.0.1#553');
    await listener.onEnd();
    expect(simulated.actual.dnsFiles).toEqual(dnsFiles);
    expect(simulated.linkDns).toBeNull();
  });

  it('serves none without systemd-resolved', async () => {
    const { simulated, run } = await startHost();
    simulated.actual = { ...simulated.actual, dns: null };
    await run();
    expect(simulated.served).toBeNull();
  });

  it('names --hosts for the names of peers without a local resolver, unless the host has it', async () => {
    const { simulated, described } = await startHost();
    simulated.actual = { ...simulated.actual, dns: null };
    const hint = /no program of this host; "cpn set cpn0 --hosts" adds the names of peers to \/etc\/hosts$/;
    const ofPeers = async () => (await described())[0][0]?.[1];
    expect(await ofPeers()).toMatch(hint);
    const state = await simulated.state();
    await simulated.tools.store.write({ ...state, options: { ...options, hosts: true } });
    expect(await ofPeers()).toMatch(/no program of this host$/);
  });

  it('serves on while systemd-resolved does not reply', async () => {
    const { simulated, triggers, run, ask } = await startHost();
    await run();
    await run();
    const { dns = null } = simulated.actual;
    simulated.actual = { ...simulated.actual, dns: null };
    await run();
    expect(ask('edge.office.cpn.internal')).toMatchObject(found('10.77.0.2'));
    simulated.actual = { ...simulated.actual, dns };
    await run();
    expect(triggers).toHaveLength(1);
  });

  it('leaves the settings to the servers behind routes if the port is taken, and tries again', async () => {
    const { simulated, run, described } = await startHost();
    const { serveNames } = simulated.tools.host;
    simulated.tools.host.serveNames = takenPort;
    await run();
    // As if the other program is one of root.
    const { dns } = simulated.actual;
    if (dns) simulated.actual = { ...simulated.actual, dns: { ...dns, isServing: true } };
    await run();
    expect(simulated.linkDns?.servers).toEqual(['192.168.50.53']);
    const reason = 'another program holds 10.77.0.1:553; find it with "ss -lntup sport = :553", and stop it';
    expect(await described()).toEqual([
      [
        ['waiting', reason],
        ['used', null],
      ],
      ['names-port-taken'],
    ]);
    expect(simulated.logged.filter(({ message }) => message === 'the names of peers are not served')).toHaveLength(1);
    simulated.tools.host.serveNames = serveNames;
    await run();
    expect(simulated.served).not.toBeNull();
    expect((await described())[1]).toEqual([]);
  });

  it('shows that the port is taken at the address for a file too, whose names fail meanwhile', async () => {
    const { simulated, run, described } = await startHost();
    simulated.dnsRecords = { 'peer-1.office.cpn.internal': [address('10.77.0.1')] };
    const settings = { own: null, isRecent: false, folder: '/etc/dnsmasq.d', trouble: null, others: [] };
    simulated.actual = {
      ...simulated.actual,
      ...{ dns: { program: 'dnsmasq', ...settings, isServing: false }, dnsFiles: {} },
    };
    simulated.tools.host.serveNames = takenPort;
    await run();
    await run();
    const reason = 'another program holds 127.77.0.1:553; find it with "ss -lntup sport = :553", and stop it';
    expect(await described()).toEqual([
      [
        ['waiting', reason],
        ['waiting', reason],
      ],
      ['names-port-taken'],
    ]);
    expect(simulated.actual.dnsFiles).toEqual({});
  });

  it('does not show a taken port with --no-dns', async () => {
    const { simulated, run, described } = await startHost();
    simulated.tools.host.serveNames = takenPort;
    await run();
    const state = await simulated.state();
    await simulated.tools.store.write({ ...state, options: { ...options, dns: false } });
    await run();
    expect((await simulated.tools.store.readNotes('cpn0')).namesTaken).toBeNull();
    expect((await described())[1]).not.toContain('names-port-taken');
  });

  it('leaves the resolver to the servers behind routes when the daemon ends', async () => {
    const { simulated, listener, run } = await startHost();
    await run();
    await run();
    await listener.onEnd();
    expect(simulated.linkDns).toMatchObject({
      servers: ['192.168.50.53'],
      domains: ['~50.168.192.in-addr.arpa', '~corp.example'],
    });
    simulated.refusesStep = () => true;
    await listener.onEnd();
  });

  it('stops with the daemon, and does not start again', async () => {
    const { simulated, listener, run } = await startHost();
    await run();
    const ending = new AbortController();
    const running = listener.run(ending.signal);
    ending.abort();
    await running;
    expect(simulated.served).toBeNull();
    await run();
    expect(simulated.served).toBeNull();
    const evaluation = await evaluateNetwork(simulated.tools, (await simulated.tools.store.read('cpn0')) as Joined);
    expect(evaluation.desired.dns?.servers).toEqual([{ address: '192.168.50.53', port: 53 }]);
  });
});
