import { beforeEach, describe, expect, it, vi } from 'vitest';
import { type Evaluation, evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { refresh } from '../../../src/app/reconcile/refresh.ts';
import { applyUpdate, noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { NameFollower } from '../../../src/app/run/name-follower.ts';
import { PendingUpdate } from '../../../src/app/run/pending-update.ts';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import type { Resolved } from '../../../src/core/names/resolved-names.ts';
import type { Address } from '../../../src/core/net/cidr.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import { address, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';

const [old, moved] = [address('198.51.100.1'), address('198.51.100.2')];
const named = peer(2, { type: 'connector', endpoint: parseEndpoint('edge.example.net:51820') });
const resolved: Resolved = { 'edge.example.net': [old] };
const interval = 30;

let simulated: SimulatedHost;
let follower: NameFollower;
const update = new PendingUpdate(() => {});

/** A host whose one peer, with a name as its endpoint, had a handshake so many seconds ago. */
async function startWith(handshakeAge: number | null): Promise<void> {
  simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [named]), { resolved }));
  await passNetwork(simulated.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
  simulated.updatePeer(2, { latestHandshake: handshakeAge === null ? null : now() - handshakeAge });
  simulated.dnsRecords['edge.example.net'] = [old];
  follower = new NameFollower(simulated.tools, 'cpn0', interval, update);
}

const now = () => Math.floor(simulated.tools.now().getTime() / 1000);
const look = async (): Promise<Evaluation> => evaluateNetwork(simulated.tools, await simulated.state());
/** Resolves what is due; returns the addresses for the next pass, null without a change. */
const follow = async () => {
  await follower.resolveDue(await look());
  const { resolved } = update.take();
  return resolved !== null && Object.keys(resolved).length > 0 ? resolved : null;
};

describe('a name is resolved', () => {
  it.each([
    ['with a handshake a moment ago', 10, 1],
    ['with a handshake 135 s ago', 135 - interval, 1],
    ['without one for longer than that', 135, 2],
    ['without any handshake', null, 2],
  ])('at the start, and an interval later again for a peer %s', async (_, age, times) => {
    await startWith(age);
    await follow();
    simulated.seconds += interval;
    await follow();
    expect(simulated.resolvedNames).toHaveLength(times);
  });

  it('once an interval at most, however many passes there are', async () => {
    await startWith(null);
    for (let pass = 0; pass < 10; pass += 1) await follow();
    expect(simulated.resolvedNames).toHaveLength(1);
  });

  it('at once after a reset, though its peer has a handshake', async () => {
    await startWith(10);
    await follow();
    follower.reset();
    await follow();
    expect(simulated.resolvedNames).toHaveLength(2);
  });

  it('by one query at a time, however slow the resolver is', async () => {
    await startWith(null);
    const { promise, resolve } = Promise.withResolvers<void>();
    const { host } = simulated.tools;
    const { resolve: query } = host;
    host.resolve = (...asked) => promise.then(() => query(...asked));
    const queried = vi.spyOn(host, 'resolve');
    const evaluation = await look();
    const first = follower.resolveDue(evaluation);
    follower.reset();
    const second = follower.resolveDue(evaluation);
    expect(queried).toHaveBeenCalledTimes(1);
    resolve();
    await Promise.all([first, second]);
    await follower.resolveDue(evaluation);
    expect(queried).toHaveBeenCalledTimes(2);
  });

  it('again after a resolver that failed, which is logged once, as is its return', async () => {
    await startWith(null);
    const { host, log } = simulated.tools;
    const { resolve: query } = host;
    const [warned, informed] = [vi.spyOn(log, 'warn'), vi.spyOn(log, 'info')];
    host.resolve = () => Promise.reject(new CommandFailed('resolver', 1, ''));
    for (let pass = 0; pass < 2; pass += 1) {
      expect(await follow()).toBeNull();
      simulated.seconds += interval;
    }
    host.resolve = query;
    simulated.dnsRecords['edge.example.net'] = [moved];
    expect(await follow()).toEqual({ 'edge.example.net': [moved, old] });
    const texts = (spied: typeof warned) => spied.mock.calls.map(([, text]) => text);
    expect(texts(warned)).toEqual(['names could not be resolved']);
    expect(texts(informed)).toContain('names are resolved again');
  });

  it('every ten minutes in any case', async () => {
    await startWith(10);
    await follow();
    simulated.seconds += 600;
    simulated.updatePeer(2, { latestHandshake: now() });
    await follow();
    expect(simulated.resolvedNames).toHaveLength(2);
  });
});

describe('an answer', () => {
  beforeEach(() => startWith(null));

  it('with the same addresses is no update', async () => {
    expect(await follow()).toBeNull();
  });

  it('inside a route of the tunnel takes neither the route away nor the endpoint', async () => {
    const tunnelPrefixes = address('192.168.50.10');
    expect((await look()).desired.routes).toContain('192.168.50.0/24');
    for (let time = 0; time < 20; time += 1) {
      simulated.dnsRecords['edge.example.net'] = [tunnelPrefixes, address(`192.168.50.${100 + time}`)];
      expect(await follow()).toBeNull();
      simulated.seconds += interval;
    }
    simulated.dnsRecords['edge.example.net'] = [tunnelPrefixes, moved];
    expect(await follow()).toEqual({ 'edge.example.net': [moved, old] });
  });

  it('with another address is one, and moves the peer there', async () => {
    simulated.dnsRecords['edge.example.net'] = [moved];
    const resolved = await follow();
    expect(resolved).toEqual({ 'edge.example.net': [moved, old] });
    const pass = await passNetwork(simulated.tools, 'cpn0', { map: null, resolved: resolved }, { withinMs: 1 });
    expect(pass?.changes.map(({ kind }) => kind).sort()).toEqual(['file', 'peer']);
    expect(simulated.actual.device?.peers[0]?.endpoint).toEqual({ host: moved, port: 51820 });
  });

  it('that is missing leaves the last address in use', async () => {
    simulated.dnsRecords = {};
    expect(await follow()).toBeNull();
    expect((await look()).desired.config.peers[0]?.endpoint).toEqual({ host: old, port: 51820 });
  });

  it('leaves a peer that roamed, and had a recent handshake, where it is', async () => {
    simulated.dnsRecords['edge.example.net'] = [moved];
    const resolved = await follow();
    const elsewhere = { host: address('192.0.2.9'), port: 4000 };
    simulated.updatePeer(2, { latestHandshake: now() - 10, endpoint: elsewhere });
    const next = applyUpdate(await simulated.state(), { map: null, resolved: resolved });
    expect((await evaluateNetwork(simulated.tools, next)).steps).toEqual([]);
  });
});

describe('a name with addresses of both families', () => {
  const [six, four] = [address('2001:db8::7'), address('198.51.100.7')];
  const name = 'edge.example.net';
  const triggered: (number | undefined)[] = [];
  const update = new PendingUpdate((inMs) => void triggered.push(inMs));
  let sent = 0;

  async function start(answer: readonly Address[], handshakeAge: number | null): Promise<void> {
    simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [named]), { resolved: { [name]: [six, four] } }));
    simulated.dnsRecords[name] = answer;
    sent = 0;
    follower = new NameFollower(simulated.tools, 'cpn0', interval, update);
    await pass();
    simulated.updatePeer(2, {
      latestHandshake: handshakeAge === null ? null : now() - handshakeAge,
      rxBytes: 0,
      txBytes: 0,
    });
  }

  /** A pass of the daemon, and what follows it. */
  async function pass(): Promise<void> {
    const made = await passNetwork(simulated.tools, 'cpn0', update.take(), { withinMs: 1 });
    if (made?.evaluation) await follower.resolveDue(made.evaluation);
  }

  /** WireGuard tries a handshake each 5 s for so long; a pass each 5 s. Returns the endpoint afterwards. */
  async function tryFor(seconds: number): Promise<string | undefined> {
    for (let time = 0; time < seconds; time += 5) {
      sent += 148;
      simulated.updatePeer(2, { txBytes: sent });
      simulated.seconds += 5;
      await pass();
    }
    return endpoint();
  }

  const endpoint = () => simulated.actual.device?.peers[0]?.endpoint?.host;
  const order = async () => (await simulated.state()).resolved[name];

  it('is tried at the next address once the first does not answer, and then at the first again', async () => {
    await start([six, four], null);
    expect(await tryFor(15)).toBe(six);
    expect(await tryFor(10)).toBe(four);
    expect(await order()).toEqual([four, six]);
    expect(triggered).toContain(15_000);
    expect(simulated.logged).toContainEqual({
      level: 'info',
      facts: { interface: 'cpn0', name, address: six, next: four },
      message: 'no answer at an address of a name; using the next one',
    });
    expect(await tryFor(25)).toBe(six);
    expect(await tryFor(60)).toBe(six);
    expect(await tryFor(45)).toBe(four);
  });

  it('is tried longest where it answered last', async () => {
    await start([six, four], 10);
    await pass();
    simulated.seconds += 200;
    const used: (string | undefined)[] = [];
    for (let time = 0; time < 600; time += 5) used.push(await tryFor(5));
    const [atSix, atFour] = [six, four].map((each) => used.filter((at) => at === each).length);
    expect(atFour).toBeGreaterThan(10);
    expect(atSix).toBeGreaterThan(3 * (atFour ?? 0));
  });

  it('stays where a peer answers, whatever order the resolver gives', async () => {
    await start([six, four], 10);
    for (const answer of [[four, six], [six, four], [four]]) {
      simulated.dnsRecords[name] = answer;
      simulated.seconds += 600;
      sent += 100;
      simulated.updatePeer(2, { latestHandshake: now() - 10, rxBytes: sent, txBytes: sent });
      await pass();
      await pass();
      expect([endpoint(), await order()]).toEqual([six, [six, four]]);
    }
  });

  it('takes the address at which a peer answers for the first', async () => {
    await start([six, four], 10);
    simulated.updatePeer(2, { latestHandshake: now(), endpoint: { host: four, port: 51820 }, rxBytes: 100 });
    await pass();
    await pass();
    expect(await order()).toEqual([four, six]);
  });

  it('is left idle where it is', async () => {
    await start([four, six], 600);
    for (let time = 0; time < 20; time += 1) {
      simulated.seconds += interval;
      await pass();
    }
    expect([endpoint(), await order()]).toEqual([six, [six, four]]);
  });

  it('takes the order of the resolver after a move, unless a peer is in use', async () => {
    await start([four, six], 600);
    follower.reset();
    await pass();
    await pass();
    expect([endpoint(), await order()]).toEqual([four, [four, six]]);
  });

  it('leaves an address that does not answer after a move, though its handshake is recent', async () => {
    await start([six, four], 10);
    await pass();
    follower.reset();
    expect(await tryFor(10)).toBe(six);
    expect(await tryFor(20)).toBe(four);
    expect(now() - (simulated.actual.device?.peers[0]?.latestHandshake ?? 0)).toBeLessThan(135);
  });

  it('is not tried at an address without a route, nor at one that the resolver no longer gives', async () => {
    await start([six, four], null);
    simulated.sourceAddressTo = (destination) => (destination === four ? null : address('2001:db8::1'));
    expect(await tryFor(300)).toBe(six);
    await start([six], null);
    expect(await tryFor(300)).toBe(six);
  });
});

describe('an address that the resolver gave once for the control plane', () => {
  const honest = address('203.0.113.1');
  const tunnelPrefixes = address('192.168.50.7');
  const service = { url: 'https://control.example.net', insecureHttp: false };
  const hostname = 'control.example.net';

  /** A host that joined with the wrong answer, before it had a route. */
  async function startDeceived(answer: readonly Address[]): Promise<void> {
    simulated = await SimulatedHost.with(
      joinedTo(mapAt('"1"', [named]), { service, resolved: { [hostname]: answer } }),
    );
    await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 1 });
    follower = new NameFollower(simulated.tools, 'cpn0', interval, update);
  }

  const routes = async () => (await look()).desired.routes.includes(prefix('192.168.50.0/24'));

  async function reachAt(reached: Address | undefined): Promise<void> {
    simulated.service.mapReplies = [
      (revision) => ({ map: null, waited: revision === null, ...(reached && { from: reached }) }),
    ];
    const { notes } = await refresh(simulated.tools, await simulated.state());
    await simulated.tools.store.amendNotes('cpn0', notes);
  }

  async function hear(answer: readonly Address[]): Promise<void> {
    simulated.dnsRecords[hostname] = answer;
    simulated.seconds += 600;
    const resolved = await follow();
    if (resolved) await passNetwork(simulated.tools, 'cpn0', { map: null, resolved }, { withinMs: 1 });
  }

  it.each([[[honest, tunnelPrefixes]], [[tunnelPrefixes, honest]]])(
    'costs no route after the next answer without it',
    async (answer) => {
      await startDeceived(answer);
      expect(await routes()).toBe(false);
      await reachAt(honest);
      await hear([honest]);
      expect(await routes()).toBe(true);
      expect((await simulated.state()).resolved[hostname]).toEqual([honest]);
    },
  );

  it('stays refused while the service answers there, or answered there last', async () => {
    await startDeceived([honest, tunnelPrefixes]);
    await hear([honest]);
    expect(await routes()).toBe(false);
    await reachAt(tunnelPrefixes);
    await hear([moved]);
    expect((await simulated.state()).resolved[hostname]).toEqual([moved, tunnelPrefixes]);
    await reachAt(undefined);
    await hear([honest]);
    expect((await simulated.state()).resolved[hostname]).toEqual([honest, tunnelPrefixes]);
    await reachAt(honest);
    await hear([]);
    expect(await routes()).toBe(false);
    await hear([honest]);
    expect(await routes()).toBe(true);
  });

  it('leaves the address of a peer that is reached by the same name for one answer more', async () => {
    const shared = peer(2, { type: 'connector', endpoint: parseEndpoint(`${hostname}:51820`) });
    simulated = await SimulatedHost.with(
      joinedTo(mapAt('"1"', [shared]), { service, resolved: { [hostname]: [old] } }),
    );
    await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 1 });
    follower = new NameFollower(simulated.tools, 'cpn0', interval, update);
    await reachAt(honest);
    await hear([honest]);
    expect((await simulated.state()).resolved[hostname]).toEqual([honest, old]);
    await hear([honest]);
    expect((await simulated.state()).resolved[hostname]).toEqual([honest]);
  });
});
