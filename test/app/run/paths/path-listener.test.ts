import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { PathListener } from '../../../../src/app/run/paths/path-listener.ts';
import type { PeerMessage } from '../../../../src/contract/network.ts';
import { Unreachable } from '../../../../src/core/errors/index.ts';
import { disabledIpv6Key } from '../../../../src/core/host-state/sysctl-keys.ts';
import { features } from '../../../../src/core/map/features.ts';
import type { Peer } from '../../../../src/core/map/model.ts';
import { hostPrefix } from '../../../../src/core/net/cidr.ts';
import { probeAddressOf, probePrefixOf } from '../../../../src/core/paths/probe-address.ts';
import { address, dialled, keyPair, peer } from '../../../core/samples.ts';
import { joinedTo, mapAt, self } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';

const connector = peer(2, { type: 'connector', endpoint: dialled(2) });
const laptop = peer(3);
const map = { ...mapAt('"1"', [connector, laptop]), relay: 2 };
const joined = { ...joinedTo(map), features };
const rekeyed = { ...laptop, publicKey: keyPair(77).publicKey };
const network = map.id ?? 0;
const probes = probePrefixOf(network, 3);
const endpoint = '198.51.100.7:51820';
const attempt: PeerMessage = {
  kind: 'try',
  data: { peer: 3, attempt: 5, endpoints: [endpoint], start_in_ms: 500, first: true },
} as const;
const agreed: PeerMessage & { kind: 'switch' } = { kind: 'switch', data: { peer: 3, attempt: 5, switch_in_ms: 300 } };

/** The clock of a host advances to the next end of a sleep when nothing else is to do. */
class Clock {
  readonly #host: SimulatedHost;
  #sleeping: { readonly at: number; readonly wake: () => void }[] = [];

  constructor(host: SimulatedHost) {
    this.#host = host;
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((wake) => {
      this.#sleeping.push({ at: this.#host.seconds + milliseconds / 1000, wake });
      if (signal?.aborted) wake();
      signal?.addEventListener('abort', () => wake());
    });
  }

  async advance(): Promise<void> {
    for (let turn = 0; turn < 10; turn += 1) await setImmediate();
    if (this.#sleeping.length === 0) return;
    const next = Math.min(...this.#sleeping.map(({ at }) => at));
    this.#host.seconds = Math.max(this.#host.seconds, next);
    const due = this.#sleeping.filter(({ at }) => at <= next);
    this.#sleeping = this.#sleeping.filter(({ at }) => at > next);
    for (const { wake } of due) wake();
  }
}

/** A host that runs the listener, and the other side of its paths. */
async function start() {
  const host = await SimulatedHost.with(joined);
  host.actual = { ...host.actual, sysctls: { ...host.actual.sysctls, [disabledIpv6Key('default')]: '0' } };
  const triggeredTo: string[] = [];
  host.onHandshakeTrigger = async (to) => void triggeredTo.push(to);
  const update = { map: null, resolved: null };
  const ended = new AbortController();
  let triggered = 0;
  let renewals = 0;
  const clock = new Clock(host);
  const tools = { ...host.tools, sleep: (ms: number, signal?: AbortSignal) => clock.sleep(ms, signal) };
  const listener = new PathListener(
    tools,
    'cpn0',
    () => (triggered += 1),
    () => (renewals += 1),
  );
  const pass = async () => {
    const made = await passNetwork(host.tools, 'cpn0', update, { withinMs: 1 });
    if (made !== null) listener.onPass(made);
    return made?.changes;
  };
  await pass();
  const running = listener.run(ended.signal);
  const until = async (holds: () => boolean) => {
    for (let turn = 0; turn < 500 && !holds(); turn += 1) await clock.advance();
    expect(holds()).toBe(true);
  };
  return {
    host,
    tools,
    clock,
    pass,
    until,
    listener,
    triggered: () => triggered,
    renewals: () => renewals,
    triggeredTo,
    signals: host.service.pathSignals,
    send: (...messages: PeerMessage[]) => listener.receive(messages),
    entry: () => host.actual.device?.peers.find(({ publicKey }) => publicKey === laptop.publicKey),
    async [Symbol.asyncDispose]() {
      ended.abort();
      await running;
    },
  };
}

type Started = Awaited<ReturnType<typeof start>>;

/** The other side answers as soon as this host sends to its endpoint. */
async function prove({ host, until, entry, send, signals }: Started): Promise<void> {
  host.onEcho = (to) => to === probeAddressOf(network, 3);
  send(attempt);
  await until(() => entry()?.endpoint != null);
  host.updatePeer(3, { latestHandshake: Math.floor(host.tools.now().getTime() / 1000), rxBytes: 156, txBytes: 180 });
  await until(() => signals.some(({ proven }) => proven !== undefined));
}

it('requests a path to a relayed peer to which packets go, and gives its own candidates', async () => {
  await using started = await start();
  const { host, signals, until, triggeredTo } = started;
  host.destinations = [laptop.address, address('10.77.0.99'), connector.address];
  host.sent = 1;
  await until(() => host.seconds > 1_010);
  expect(signals).toEqual([]);
  host.sent = 100;
  await until(() => signals.length > 0);
  expect(signals[0]?.wanted).toEqual([3]);
  expect(signals[0]?.candidates).toBeDefined();
  // The connector observes the endpoint of now.
  expect(triggeredTo).toEqual([connector.address]);
});

it('gives its candidates once for all peers whose attempts begin together', async () => {
  await using started = await start();
  const { signals, send, until, host } = started;
  send(...Array.from({ length: 20 }, (): PeerMessage => ({ kind: 'candidates', data: { peers: [3] } })));
  await until(() => signals.length > 0);
  const { seconds } = host;
  await until(() => host.seconds > seconds + 5);
  expect(signals.length).toBeLessThanOrEqual(2);
});

it('gives no candidates if the operator turned that off', async () => {
  await using started = await start();
  const { host, signals, send, until, pass } = started;
  await host.tools.store.write({ ...joined, options: { ...joined.options, localCandidates: false } });
  await pass();
  send({ kind: 'candidates', data: { peers: [3] } });
  await until(() => signals.length > 0);
  expect(signals).toEqual([{ candidates: [] }]);
});

it('takes no attempt after the operator turned direct paths off, and observes others still', async () => {
  await using started = await start();
  const { host, signals, send, until, entry, pass } = started;
  await host.tools.store.write({ ...joined, options: { ...joined.options, directPaths: false } });
  // Before the next pass too.
  send({ kind: 'candidates', data: { peers: [3] } }, attempt);
  host.updatePeer(2, { endpoint: { host: address('203.0.113.2'), port: 4711 }, latestHandshake: 999 });
  await pass();
  send(attempt, { kind: 'observe', data: { peers: [2] } });
  await until(() => signals.length > 0);
  await until(() => signals.length > 3);
  const declined = { declined: [3] };
  expect(signals.filter(({ observed }) => observed === undefined)).toEqual([declined, declined, declined]);
  expect(signals.find(({ observed }) => observed !== undefined)).toMatchObject({ observed: [{ peer: 2 }] });
  expect(entry()).toBeUndefined();
});

it('ends a path for the other side as soon as a pass removed it', async () => {
  await using started = await start();
  const { host, send, until, signals, triggered, pass } = started;
  await prove(started);
  send(agreed);
  await until(() => triggered() > 0);
  await host.tools.store.write({ ...joined, options: { ...joined.options, directPaths: false } });
  await pass();
  await until(() => signals.length > 1);
  expect(signals.slice(1)).toEqual([{ ended: [{ peer: 3, why: 'moved' }] }]);
});

it('does not take a path as lost that a command removed, and requests none once the option is off', async () => {
  await using started = await start();
  const { host, send, until, signals, triggered, pass, clock } = started;
  await prove(started);
  send(agreed);
  await until(() => triggered() > 0);
  await pass();
  const before = triggered();
  await host.tools.store.write({ ...joined, options: { ...joined.options, directPaths: false } });
  await passNetwork(host.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
  // Before the next pass of the daemon.
  host.destinations = [laptop.address];
  host.sent = 7;
  await until(() => triggered() > before);
  for (let turn = 0; turn < 20; turn += 1) await clock.advance();
  expect(signals.slice(1)).toEqual([{ ended: [{ peer: 3, why: 'moved' }] }]);
});

/** The state with other peers in its map. */
function withPeers(...peers: readonly Peer[]) {
  return { ...joined, membership: { ...joined.membership, map: { ...map, peers } } };
}

it.each([
  ['the peer has', withPeers(self, connector, rekeyed)],
  [
    'this host has',
    { ...withPeers({ ...self, publicKey: keyPair(78).publicKey }, connector, laptop), keyPair: keyPair(78) },
  ],
])('ends a path whose session ended, as %s another key', async (_, changed) => {
  await using started = await start();
  const { host, send, until, signals, triggered, pass, entry } = started;
  await prove(started);
  send(agreed);
  await until(() => triggered() > 0);
  await pass();
  await host.tools.store.write(changed);
  await pass();
  await until(() => signals.length > 1);
  expect(signals.slice(1)).toEqual([{ ended: [{ peer: 3, why: 'moved' }] }]);
  expect(entry()).toBeUndefined();
});

it('gives up an attempt when the peer has another key, and wants the next one soon', async () => {
  await using started = await start();
  const { host, send, until, signals, pass, entry } = started;
  send(attempt);
  await until(() => entry()?.endpoint != null);
  await host.tools.store.write(withPeers(self, connector, rekeyed));
  await pass();
  await until(() => signals.length > 0);
  const failed = [{ peer: 3, attempt: 5, tried: [] }];
  expect(signals).toEqual([{ ended: [{ peer: 3, why: 'moved' }], failed }]);
  expect(entry()).toBeUndefined();
});

it('tries a candidate with no packet of the network, proves it by echoes, and switches at the agreed moment', async () => {
  await using started = await start();
  const { clock, send, until, entry, signals, triggered } = started;
  await prove(started);
  expect(signals).toEqual([{ proven: [{ peer: 3, attempt: 5 }] }]);
  expect(entry()?.allowedIps).toEqual([probes]);
  send({ ...agreed, data: { ...agreed.data, attempt: 4 } });
  await clock.advance();
  expect(entry()?.allowedIps).toEqual([probes]);
  send(agreed);
  await until(() => triggered() > 0);
  expect(entry()?.allowedIps.toSorted()).toEqual([hostPrefix(laptop.address), probes].toSorted());
});

it('leaves nothing of a path that no candidate gives', async () => {
  await using started = await start();
  const { send, until, entry, signals, host } = started;
  send(attempt);
  await until(() => signals.length > 0);
  expect(signals).toEqual([{ failed: [{ peer: 3, attempt: 5, tried: [{ endpoint, outcome: 'no-answer' }] }] }]);
  expect(entry()).toBeUndefined();
  expect(host.actual.device?.peers).toHaveLength(1);
});

it('returns to the relay alone when the path stops answering, and a pass agrees', async () => {
  await using started = await start();
  const { host, clock, send, until, entry, signals, pass, triggered } = started;
  await prove(started);
  send(agreed);
  await until(() => triggered() > 0);
  await pass();
  expect(entry()?.allowedIps).toContain(hostPrefix(laptop.address));
  host.onEcho = () => false;
  for (let sent = 1; signals.length < 2 && sent < 200; sent += 1) {
    host.updatePeer(3, { txBytes: 1_000 * sent });
    await clock.advance();
  }
  expect(signals.at(-1)).toMatchObject({ ended: [{ peer: 3, why: 'lost' }], wanted: [3] });
  expect(entry()?.allowedIps ?? []).toEqual([]);
  await pass();
  expect(entry()).toBeUndefined();
  const relay = host.actual.device?.peers[0];
  expect(relay?.allowedIps).toContain('10.77.0.0/24');
});

it('states the end of a path until the control plane has it, and requests the next one from the new place', async () => {
  await using started = await start();
  const { host, send, until, signals, triggered, listener, pass, renewals } = started;
  await prove(started);
  send(agreed);
  await until(() => triggered() > 0);
  let failures = 0;
  host.service.onPathSignals = () => {
    failures += 1;
    throw new Unreachable('http://control', 'no route', { delivered: false, heard: false, retryAfterMs: null });
  };
  host.onEcho = () => false;
  listener.move();
  await until(() => failures > 3);
  await pass();
  await until(() => failures > 5);
  expect(signals).toHaveLength(1);
  host.service.onPathSignals = () => {};
  listener.arrive();
  await until(() => signals.length > 1);
  expect(signals.slice(1)).toMatchObject([{ ended: [{ peer: 3, why: 'moved' }], wanted: [3] }]);
  // The control plane may still hold a request of the old place.
  expect(renewals()).toBeGreaterThan(0);
});

it('keeps a path that still answers after an event of the uplink, and probes it at full size', async () => {
  await using started = await start();
  const { host, send, until, entry, signals, triggered, listener } = started;
  await prove(started);
  send(agreed);
  await until(() => triggered() > 0);
  const sizes: number[] = [];
  host.onEcho = (_, bytes) => sizes.push(bytes) > 0;
  listener.move();
  await until(() => sizes.length > 0);
  await until(() => host.seconds > 1_020);
  expect(sizes).toContain(1_420);
  expect([entry()?.allowedIps.length, signals.length]).toEqual([2, 1]);
});

it.each([
  ['large', (bytes: number) => bytes < 1_000],
  ['small', (bytes: number) => bytes > 1_000],
])('leaves a path that no longer carries %s packets', async (_, passes) => {
  await using started = await start();
  const { host, send, until, signals, triggered, listener } = started;
  await prove(started);
  send(agreed);
  await until(() => triggered() > 0);
  host.onEcho = (to, bytes) => to === probeAddressOf(network, 3) && passes(bytes);
  listener.move();
  await until(() => signals.length > 1);
  expect(signals.at(-1)).toEqual({ ended: [{ peer: 3, why: 'moved' }] });
});

it('requests a path again as soon as the control plane answers', async () => {
  await using started = await start();
  const { host, until, signals } = started;
  host.destinations = [laptop.address];
  let failures = 0;
  host.service.onPathSignals = () => {
    failures += 1;
    throw new Unreachable('http://control', 'no route', { delivered: false, heard: false, retryAfterMs: null });
  };
  const sendOn = () => {
    host.sent += 100;
    return failures > 2;
  };
  await until(sendOn);
  expect(host.seconds).toBeLessThan(1_010);
  host.service.onPathSignals = () => {};
  await until(() => sendOn() && signals.length > 0);
  expect(signals[0]?.wanted).toEqual([3]);
});

it('returns with the other side, and states nothing', async () => {
  await using started = await start();
  const { send, until, entry, signals, triggered, pass } = started;
  await prove(started);
  send(agreed);
  await until(() => triggered() > 0);
  send({ kind: 'return', data: { peer: 3 } });
  await until(() => triggered() > 1);
  await until(() => entry() === undefined);
  expect(signals).toHaveLength(1);
  // No drift: the table is that of a relayed peer.
  expect(await pass()).toEqual([]);
});

it('states the end of a path to which this host never switched: the peer may use it', async () => {
  await using started = await start();
  const { until, entry, signals, renewals } = started;
  await prove(started);
  const before = renewals();
  // The reply with the moment may be lost on a dead connection.
  await until(() => renewals() > before);
  expect(signals.some(({ ended }) => ended !== undefined)).toBe(false);
  await until(() => signals.some(({ ended }) => ended !== undefined));
  expect(signals.at(-1)).toEqual({ ended: [{ peer: 3, why: 'lost' }] });
  await until(() => entry() === undefined);
});

it('leaves no peer in the table at its end that it only tried', async () => {
  const started = await start();
  await prove(started);
  expect(started.entry()).toBeDefined();
  await started[Symbol.asyncDispose]();
  expect(started.entry()).toBeUndefined();
});

it('ends what an earlier daemon only tried: this one gets no moment to switch to it', async () => {
  await using started = await start();
  const { host, until, entry, signals } = started;
  await prove(started);
  const later = new PathListener(
    started.tools,
    'cpn0',
    () => {},
    () => {},
  );
  const made = await passNetwork(host.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
  if (made !== null) later.onPass(made);
  await until(() => entry() === undefined);
  const ended = new AbortController();
  const running = later.run(ended.signal);
  await until(() => signals.some((each) => each.ended !== undefined));
  expect(signals.at(-1)).toEqual({ ended: [{ peer: 3, why: 'lost' }] });
  ended.abort();
  await running;
});

it('finds the paths of an earlier daemon in the table, and watches them', async () => {
  await using started = await start();
  const { host, send, until, triggered, pass, entry } = started;
  await prove(started);
  send(agreed);
  await until(() => triggered() > 0);
  await pass();
  const later = new PathListener(
    host.tools,
    'cpn0',
    () => {},
    () => {},
  );
  const made = await passNetwork(host.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
  if (made !== null) later.onPass(made);
  expect(made?.changes).toEqual([]);
  later.receive([{ kind: 'return', data: { peer: 3 } }]);
  await until(() => entry() === undefined);
});

it('states the endpoints that it observes, and whether they stood', async () => {
  await using started = await start();
  const { host, send, until, signals, pass } = started;
  host.updatePeer(2, { latestHandshake: 100 });
  send({ kind: 'observe', data: { peers: [2, 9] } });
  await until(() => signals.length === 1);
  host.updatePeer(2, { latestHandshake: 220 });
  await pass();
  send({ kind: 'observe', data: { peers: [2] } });
  await until(() => signals.length === 2);
  expect(signals.map(({ observed }) => observed)).toEqual([
    [{ peer: 2, endpoint: '203.0.113.2:51820', stood: false }],
    [{ peer: 2, endpoint: '203.0.113.2:51820', stood: true }],
  ]);
});
