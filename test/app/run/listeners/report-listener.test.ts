import { describe, expect, it } from 'vitest';
import { evaluateNetwork } from '../../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../../src/app/reconcile/pass.ts';
import { ReportListener } from '../../../../src/app/run/listeners/report-listener.ts';
import { Secret } from '../../../../src/core/crypto/secret.ts';
import { CommandFailed, NotOurs, Refused, Unreachable } from '../../../../src/core/errors/index.ts';
import type { PeerFailure } from '../../../../src/core/map/model.ts';
import type { RefusedConnection } from '../../../../src/core/rules/refused.ts';
import type { Joined } from '../../../../src/store/state/state.ts';
import { address, dialled, peer } from '../../../core/samples.ts';
import { joinedTo, mapAt } from '../../joined-state.ts';
import { SimulatedHost } from '../../simulated-host.ts';
import { passOf } from '../pass-of.ts';

const member = joinedTo(
  mapAt(
    '"1"',
    [2, 3].map((id) => peer(id, { type: 'connector', endpoint: dialled(id) })),
  ),
);
const lan = '192.168.50.0/24';
const unreachable = (retryAfterMs: number | null = null) =>
  new Unreachable('https://x', 'refused', { delivered: false, heard: true, retryAfterMs });

/** A host with a session to both connectors; `pass` makes a pass, this many seconds after the one before. */
async function start(initial: Joined = member) {
  const simulated = await SimulatedHost.with(initial);
  await passNetwork(simulated.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
  for (const number of [2, 3]) answer(simulated, number);
  const rtts = new Map<ReturnType<typeof peer>['publicKey'], number>();
  const listener = new ReportListener(simulated.tools, 'cpn0', () => rtts);
  const ending = new AbortController();
  const ended = listener.run(ending.signal);
  const stop = () => {
    ending.abort();
    return ended;
  };
  const settle = () => new Promise((resolve) => setTimeout(resolve, 20));
  const pass = async (seconds = 0, changes: Partial<Joined> = {}) => {
    simulated.seconds += seconds;
    const state = { ...(await simulated.state()), ...changes };
    const before = simulated.service.reports.length;
    const evaluation = state.enabled ? await evaluateNetwork(simulated.tools, state) : null;
    await listener.onPass(passOf(evaluation, evaluation?.changes));
    await settle();
    return simulated.service.reports.slice(before);
  };
  return { simulated, listener, pass, rtts, stop, settle };
}

/** A peer answers now, with this many bytes more. */
function answer(simulated: SimulatedHost, number: number, bytes = 100): void {
  const { publicKey } = peer(number);
  const before = simulated.actual.device?.peers.find((each) => each.publicKey === publicKey);
  const counters = { rxBytes: (before?.rxBytes ?? 0) + bytes, txBytes: (before?.txBytes ?? 0) + bytes };
  simulated.updatePeer(number, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000), ...counters });
}

const both = [
  { peer: 2, path: 'direct', handshake_age: 0 },
  { peer: 3, path: 'direct', handshake_age: 0 },
];
const whole = {
  ...{ complete: true, paths: both, routes: [{ route: lan, connector: 2 }] },
  ...{ drift: 0, pin_mismatches: [], problem: null },
};
const lost: readonly PeerFailure[] = [{ peer: 2, back: false }];

describe('a report', () => {
  it('has all of it at the start, and what changed its state after that', async () => {
    const { pass } = await start();
    expect(await pass()).toEqual([whole]);
    expect(await pass(1)).toEqual([]);
    expect(await pass(1, { failed: lost })).toEqual([
      {
        paths: [{ peer: 2, path: 'down', handshake_age: 2 }],
        routes: [{ route: lan, connector: 3 }],
      },
    ]);
    expect(await pass(1, { failed: lost })).toEqual([]);
  });

  it('has a peer that did not answer a probe, and that answers again before a pass found it dead', async () => {
    const { simulated, listener, pass } = await start();
    await pass();
    listener.noteProbed([{ peer: 2, answered: false }]);
    answer(simulated, 2);
    expect(await pass(1)).toMatchObject([{ paths: [{ peer: 2, path: 'direct' }] }]);
    expect(await pass(1)).toEqual([]);
    // Here a pass found it dead, and the probe that it answers.
    expect(await pass(1, { failed: lost })).toMatchObject([{ paths: [{ peer: 2, path: 'down' }] }]);
    listener.noteProbed([{ peer: 2, answered: true }]);
    expect(await pass(1)).toMatchObject([{ routes: [{ connector: 2 }] }]);
  });

  it('has refused connections once, the latest 16, with a retry after a failure', async () => {
    const { simulated, listener, pass } = await start();
    await pass();
    const refusedAt = (port: number): RefusedConnection => ({
      ...{ from: address('10.77.0.2'), to: address('10.77.0.1'), protocol: 'tcp', port, seconds: 1 },
    });
    const ports = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);
    const sent = (...all: number[]) => all.map(refusedAt).map(({ seconds: _, ...connection }) => connection);
    listener.noteRefused([refusedAt(22)]);
    expect(await pass(1)).toEqual([{ refused: sent(22) }]);
    expect(await pass(1)).toEqual([]);
    simulated.service.onReport = () => {
      throw unreachable();
    };
    listener.noteRefused(ports(1, 11).map(refusedAt));
    await pass(1);
    simulated.service.onReport = () => ({ reachableBy: 1, witnesses: 1 });
    listener.noteRefused(ports(8, 21).map(refusedAt));
    const [retried] = await pass(120);
    expect(retried).toMatchObject({ complete: true, refused: sent(...ports(8, 21), 1, 2, 3) });
  });

  it('has no refused connections for a service that does not describe them', async () => {
    const { listener, pass } = await start({ ...member, features: ['peer-report'] });
    await pass();
    listener.noteRefused([
      { from: address('10.77.0.2'), to: address('10.77.0.1'), protocol: 'tcp', port: 22, seconds: 1 },
    ]);
    expect(await pass(1)).toEqual([]);
  });

  it('has figures once a minute, where they changed notably, over the connection of the long poll', async () => {
    const { simulated, listener, pass, rtts } = await start();
    await pass();
    rtts.set(peer(2).publicKey, 12.34);
    expect(await pass(20)).toEqual([]);
    await listener.reportIdle();
    simulated.seconds += 40;
    answer(simulated, 2);
    expect(await pass()).toEqual([]);
    expect(simulated.service.reports).toHaveLength(1);
    await listener.reportIdle();
    expect(simulated.service.reports.slice(1)).toEqual([
      { paths: [{ peer: 2, path: 'direct', handshake_age: 0, rtt_ms: 12.3, rx_rate: 3, tx_rate: 3 }] },
    ]);
    rtts.set(peer(2).publicKey, 80);
    expect(await pass(30)).toEqual([]);
    answer(simulated, 3);
    expect(await pass(30, { failed: lost })).toMatchObject([
      { paths: [{ peer: 2, path: 'down', rtt_ms: 80 }], routes: [{ connector: 3 }] },
    ]);
  });

  it('has figures once in three minutes without long polls', async () => {
    const { pass, rtts } = await start();
    await pass();
    rtts.set(peer(2).publicKey, 12.34);
    for (const seconds of [60, 60, 50]) expect(await pass(seconds)).toEqual([]);
    expect(await pass(10)).toMatchObject([{ paths: [{ peer: 2, rtt_ms: 12.3 }] }]);
  });

  it('is empty 50 s after the first and then once in 100 s of a host that has nothing to report, over the connection of the long poll', async () => {
    const { simulated, listener, pass } = await start();
    await pass();
    const sent: number[] = [];
    for (let at = 10; at <= 600; at += 10) {
      for (const number of [2, 3]) answer(simulated, number);
      simulated.seconds += 10;
      const before = simulated.service.reports.length;
      if (at % 30 === 0) await pass();
      expect(simulated.service.reports).toHaveLength(before);
      if (at % 50 === 0) await listener.reportIdle();
      if (simulated.service.reports.length > before) sent.push(at);
    }
    expect(sent).toEqual([50, 150, 250, 350, 450, 550]);
    expect(simulated.service.reports.slice(1)).toEqual(sent.map(() => ({})));
    expect(simulated.service.connectOptions).toMatchObject({ connection: 'keep' });
  });

  it('is empty once in three minutes of such a host without long polls', async () => {
    const { simulated, pass } = await start();
    await pass();
    for (let at = 0; at < 20; at += 1) {
      for (const number of [2, 3]) answer(simulated, number);
      await pass(30);
    }
    expect(simulated.service.reports.slice(1)).toEqual([{}, {}, {}]);
  });

  it('follows the first at the next pass where its reply had no witness, once', async () => {
    const { simulated, listener, pass } = await start();
    simulated.service.onReport = () => ({ reachableBy: 0, witnesses: 0 });
    await pass();
    expect(await pass(10)).toEqual([]);
    for (const number of [2, 3]) answer(simulated, number);
    expect(await pass(20)).toEqual([{}]);
    for (let at = 0; at < 2; at += 1) {
      for (const number of [2, 3]) answer(simulated, number);
      expect(await pass(30)).toEqual([]);
    }
    await listener.reportIdle();
    expect(simulated.service.reports).toHaveLength(2);
  });

  it('on its way does not delay the next long poll', async () => {
    const { simulated, listener, pass, stop } = await start();
    simulated.service.onReport = () =>
      new Promise((_, reject) => simulated.service.reportSignal?.addEventListener('abort', () => reject(new Error())));
    await pass();
    await listener.reportIdle();
    await stop();
  });

  it('has all of it after a failure, once the pause is over', async () => {
    const { simulated, pass } = await start();
    await pass();
    simulated.service.onReport = () => {
      throw unreachable(20_000);
    };
    await pass(1, { failed: lost });
    simulated.service.onReport = () => ({ reachableBy: 1, witnesses: 1 });
    expect(await pass(20, { failed: lost })).toEqual([]);
    expect(await pass(4, { failed: lost })).toMatchObject([{ complete: true, routes: [{ connector: 3 }] }]);
    expect(simulated.logged.filter(({ level }) => level === 'warn')).toEqual([]);
  });

  it('is not repeated soon where the service refuses it, which is logged once', async () => {
    const { simulated, pass } = await start();
    let requests = 0;
    simulated.service.onReport = () => {
      requests += 1;
      throw new Refused(422, 'the report', 'no', null);
    };
    for (let at = 0; at < 8; at += 1) await pass(30);
    expect(requests).toBe(2);
    const warnings = simulated.logged.filter(({ level }) => level === 'warn');
    expect(warnings.map(({ message }) => message)).toEqual(['what this host observes could not be reported']);
  });

  it('is refused in silence where the request for the map is, which the log has', async () => {
    const { simulated, pass } = await start();
    simulated.service.onReport = () => {
      throw new Refused(401, 'the report', 'no', null);
    };
    await pass();
    expect(simulated.logged.filter(({ level }) => level === 'warn')).toEqual([]);
  });

  it('is silent about a failure where the map cannot be read either, and sends nothing that says nothing', async () => {
    const { simulated, pass } = await start();
    simulated.service.onReport = () => ({ reachableBy: 0, witnesses: 0 });
    await pass();
    const { sync } = await simulated.tools.store.readNotes('cpn0');
    await simulated.tools.store.amendNotes('cpn0', { sync: { ...sync, error: 'it answered 429' } });
    for (const number of [2, 3]) answer(simulated, number);
    expect(await pass(25)).toEqual([]);
    let requests = 0;
    simulated.service.onReport = () => {
      requests += 1;
      throw new Refused(422, 'the report', 'no', null);
    };
    for (let at = 0; at < 4; at += 1) await pass(400, { failed: lost });
    expect(requests).toBe(4);
    expect(simulated.logged.filter(({ level }) => level === 'warn')).toEqual([]);
  });

  it('has all of it in a new membership', async () => {
    const { pass } = await start();
    await pass();
    const service = { url: 'https://203.0.113.98', insecureHttp: false };
    expect(await pass(1, { service })).toMatchObject([{ complete: true }]);
  });

  it('of a former membership, whose reply comes late, says nothing of what the new one has', async () => {
    const { simulated, pass, settle } = await start();
    const first = Promise.withResolvers<void>();
    let requests = 0;
    simulated.service.onReport = async () => {
      requests += 1;
      if (requests === 1) await first.promise;
      return { reachableBy: requests, witnesses: requests };
    };
    await pass();
    const service = { url: 'https://203.0.113.98', insecureHttp: false };
    await pass(1, { service });
    first.resolve();
    await settle();
    expect(simulated.service.reports.map(({ complete }) => complete)).toEqual([true, true]);
    expect((await simulated.tools.store.readNotes('cpn0')).reachability).toMatchObject({ reachableBy: 2 });
  });

  it('is sent at once to a new membership, whatever pause the former control plane requested', async () => {
    const { simulated, pass } = await start();
    const { onReport } = simulated.service;
    simulated.service.onReport = () => {
      throw unreachable(600_000);
    };
    await pass();
    simulated.service.onReport = onReport;
    expect(await pass(1)).toEqual([]);
    const service = { url: 'https://203.0.113.98', insecureHttp: false };
    expect(await pass(1, { service })).toMatchObject([{ complete: true }]);
  });

  it('is empty of a network that is down', async () => {
    const { pass } = await start();
    await pass();
    expect(await pass(1, { enabled: false })).toEqual([{ ...whole, paths: [], routes: [] }]);
  });

  it('is sent one at a time, the newest last, and delays no pass', async () => {
    const { simulated, pass, settle } = await start();
    const first = Promise.withResolvers<void>();
    let requests = 0;
    simulated.service.onReport = async () => {
      requests += 1;
      if (requests === 1) await first.promise;
      return { reachableBy: 1, witnesses: 1 };
    };
    await pass();
    await pass(1, { failed: [{ peer: 3, back: false }] });
    await pass(1, { failed: lost });
    expect(requests).toBe(1);
    first.resolve();
    await settle();
    expect(simulated.service.reports.slice(1)).toMatchObject([
      { paths: [{ peer: 2, path: 'down' }], routes: [{ connector: 3 }] },
    ]);
  });

  it('is not sent more often than the control plane takes', async () => {
    const { simulated, pass } = await start();
    for (let at = 0; at < 60; at += 1) await pass(0.5, { failed: at % 2 ? lost : [] });
    expect(simulated.service.reports.length).toBeLessThanOrEqual(20);
    await pass(20, { failed: [] });
    expect(await pass(1, { failed: lost })).toMatchObject([{ paths: [{ path: 'down' }] }]);
  });

  it('is never sent to a service that does not describe it', async () => {
    const { simulated, listener, pass } = await start({ ...member, features: ['map-revision'] });
    await pass();
    listener.onResult(new NotOurs('x', 'y', 'z'));
    await pass(120);
    const { pass: local } = await start({ ...member, features: null });
    await local();
    expect([simulated.service.reports, simulated.service.knownService]).toEqual([[], undefined]);
  });

  it('is not sent with a personal token', async () => {
    const membership = { ...member.membership, accessToken: null, personalToken: new Secret('cpn_x') };
    const { pass } = await start({ ...member, membership });
    expect(await pass()).toEqual([]);
  });
});

it('ends with the daemon, whatever is on its way', async () => {
  const { simulated, pass, stop } = await start();
  simulated.service.onReport = () =>
    new Promise((_, reject) => simulated.service.reportSignal?.addEventListener('abort', () => reject(new Error())));
  await pass();
  await stop();
  expect(simulated.logged.filter(({ level }) => level !== 'debug')).toEqual([]);
});

it('ends only after the report that is on its way', async () => {
  const { simulated, pass, stop, settle } = await start();
  const { promise, resolve } = Promise.withResolvers<void>();
  simulated.service.onReport = async () => {
    await promise;
    return { reachableBy: 1, witnesses: 1 };
  };
  await pass();
  const order: string[] = [];
  const ended = stop().then(() => order.push('ended'));
  await settle();
  order.push('replied');
  resolve();
  await ended;
  expect(order).toEqual(['replied', 'ended']);
});

describe('a failed pass', () => {
  const failure = new CommandFailed('wg', 1, 'no');

  it('is a problem once the retry fails too, until a pass succeeds', async () => {
    const { simulated, listener, pass, settle } = await start();
    await pass();
    for (const problem of [failure, null, failure, failure]) listener.onResult(problem);
    await settle();
    expect(simulated.service.reports.slice(1)).toEqual([{ problem: failure.message }]);
    listener.onResult(null);
    expect(await pass(1)).toEqual([]);
    expect(simulated.service.reports.slice(2)).toEqual([{ problem: null }]);
  });

  it('is reported before any pass succeeded', async () => {
    const { simulated, listener, pass, settle } = await start();
    for (const problem of [failure, failure]) listener.onResult(problem);
    await settle();
    expect(simulated.service.reports).toMatchObject([{ complete: true, paths: [], problem: failure.message }]);
    listener.onResult(null);
    await pass();
    expect(simulated.service.reports.slice(1)).toMatchObject([
      { problem: null },
      { paths: [{ peer: 2 }, { peer: 3 }] },
    ]);
  });

  it('that no retry repairs is a problem at once', async () => {
    const { simulated, listener, pass, settle } = await start();
    await pass();
    const problem = new NotOurs('the interface', 'cpn0', 'remove it');
    listener.onResult(problem);
    await settle();
    expect(simulated.service.reports.slice(1)).toEqual([{ problem: problem.message }]);
  });
});

describe('the reply', () => {
  const noted = async (simulated: SimulatedHost) => (await simulated.tools.store.readNotes('cpn0')).reachability;

  it('is in the notes, which are written only when it changes', async () => {
    const { simulated, pass } = await start();
    const amended: object[] = [];
    const { amendNotes } = simulated.tools.store;
    simulated.tools.store.amendNotes = (link, part) => {
      amended.push(part);
      return amendNotes(link, part);
    };
    await pass();
    await pass(180);
    expect(await noted(simulated)).toEqual({ reachableBy: 1, witnesses: 1 });
    expect(simulated.service.reports).toHaveLength(2);
    expect(amended).toHaveLength(1);
    simulated.service.onReport = () => ({ reachableBy: 1, witnesses: 2 });
    await pass(180);
    expect(await noted(simulated)).toEqual({ reachableBy: 1, witnesses: 2 });
  });

  it('is forgotten where reports fail, and where the service has no such operation', async () => {
    const { simulated, pass } = await start();
    await pass();
    expect(await noted(simulated)).not.toBeNull();
    simulated.service.onReport = () => {
      throw unreachable();
    };
    await pass(180);
    expect(await noted(simulated)).toBeNull();
    simulated.service.onReport = () => ({ reachableBy: 1, witnesses: 1 });
    await pass(120);
    expect(await noted(simulated)).not.toBeNull();
    await pass(1, { features: [] });
    expect(await noted(simulated)).toBeNull();
    await pass(1);
    expect(await noted(simulated)).not.toBeNull();
  });
});
