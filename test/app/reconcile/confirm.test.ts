import { describe, expect, it } from 'vitest';
import { isConfirmed, isLossConfirmed, isMapReceived } from '../../../src/app/reconcile/await-confirmation.ts';
import { cleanUp } from '../../../src/app/reconcile/cleanup.ts';
import { mayCutOff } from '../../../src/app/reconcile/confirm.ts';
import { findConfirmingPeers, isAnyAnswering } from '../../../src/app/reconcile/confirming-peers.ts';
import { type Evaluation, evaluateNetwork } from '../../../src/app/reconcile/evaluate-network.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { CommandFailed, NotConfirmed, Unreachable } from '../../../src/core/errors/index.ts';
import {
  allForwardingKey,
  commonFilterKey,
  forwardingKey,
  ipv6Key,
  sourceRouteKey,
} from '../../../src/core/host-state/sysctl-keys.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';
import type { Change } from '../../../src/core/reconcile/change.ts';
import { markedSourceKey } from '../../../src/core/routing/tunnel-rules.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { bare, options as defaults, dialled, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith, fail } from '../simulated-service.ts';

const options = { withinMs: 20_000 };
const gone = new Unreachable('https://203.0.113.99', 'gone', { delivered: false, heard: false, retryAfterMs: null });
const relay = peer(2, { type: 'connector', endpoint: dialled(2) });
const secondsOf = (simulated: SimulatedHost) => Math.floor(simulated.tools.now().getTime() / 1000);

/** A host that is up in the network of these peers, and has a fresh handshake with some. */
async function startDesk(numbers: readonly number[], fresh: readonly number[]): Promise<SimulatedHost> {
  const map = mapAt('"1"', [relay, ...numbers.map((number) => peer(number, { endpoint: dialled(number) }))]);
  const simulated = await SimulatedHost.with(joinedTo(map));
  simulated.service.mapReplies = [answerWith(map)];
  await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
  for (const number of fresh) simulated.updatePeer(number, { latestHandshake: secondsOf(simulated) - 10 });
  simulated.steps.length = 0;
  simulated.onHandshakeTrigger = () => {};
  return simulated;
}

describe('a change may cut a host off', () => {
  const change = (action: string, kind: string) => ({ action, kind, target: 'x' }) as unknown as Change;
  const harmless = [
    ...['add file', 'update file', 'remove file', 'add hosts', 'update hosts', 'remove hosts', 'add peer'],
    ...['add dns', 'update dns', 'remove dns'],
  ];
  const kinds: Record<Change['kind'], null> = {
    ...{ api: null, interface: null, address: null, peer: null, route: null, rule: null, sysctl: null },
    ...{ firewall: null, dns: null, hosts: null, file: null },
  };
  const all = Object.keys(kinds).flatMap((kind) =>
    ['add', 'update', 'remove'].map((action) => [action, kind] as const),
  );

  it.each(all)('%s %s', (action, kind) => {
    const isHarmless = harmless.includes(`${action} ${kind}`);
    expect(mayCutOff([change(action, kind)])).toBe(!isHarmless);
    expect(mayCutOff([change('add', 'file'), change(action, kind), change('add', 'peer')])).toBe(!isHarmless);
  });

  it('nothing cuts it off without a change', () => expect(mayCutOff([])).toBe(false));
});

describe('the peers that can confirm a change', () => {
  it('stay, had a fresh handshake, and are sixteen at most', async () => {
    const numbers = Array.from({ length: 40 }, (_, at) => at + 3);
    const simulated = await startDesk(numbers, [2, ...numbers.slice(10)]);
    const state = await simulated.state();
    const [removed, kept] = [state.membership.map.peers.slice(0, 20), state.membership.map.peers.slice(20)];
    const evaluation = {
      ...{ state, actual: simulated.actual },
      desired: {
        config: { peers: kept.map(({ publicKey, address }) => ({ publicKey, allowedIps: [`${address}/32`] })) },
      },
    } as unknown as Evaluation;
    const found = findConfirmingPeers(evaluation, secondsOf(simulated));
    expect(found.map(({ publicKey }) => publicKey)).toEqual(kept.slice(0, 16).map(({ publicKey }) => publicKey));
    expect(found.map(({ publicKey }) => publicKey)).not.toContain(removed[0]?.publicKey);
    expect(found.every(({ isReached, latestHandshake }) => isReached && latestHandshake !== null)).toBe(true);
  });

  it('answer by TCP, or by a handshake that is newer than the one before', async () => {
    const simulated = await startDesk([3], [2, 3]);
    const state = await simulated.state();
    const before = secondsOf(simulated) - 10;
    const asked = state.membership.map.peers
      .slice(1)
      .map(({ publicKey, address }) => ({ publicKey, address, latestHandshake: before, isReached: true }));
    const isAnswered = () => isAnyAnswering(simulated.tools, state, asked);
    expect(await isAnswered()).toBe(false);
    simulated.updatePeer(3, { latestHandshake: before + 1 });
    expect(await isAnswered()).toBe(true);
    simulated.updatePeer(3, { latestHandshake: before });
    simulated.reachable.add('10.77.0.3');
    expect(await isAnswered()).toBe(true);
    expect(await isAnyAnswering(simulated.tools, state, [])).toBe(false);
  });
});

describe('a change that fails', () => {
  const moved = (revision: string) =>
    mapAt(revision, [relay], { routes: ['192.168.50.0/24', '192.168.60.0/24'].map((text) => parsePrefix(text)) });

  it('fails with its own error where its rollback fails too, which is logged', async () => {
    const simulated = await startDesk([], [2]);
    const refused: string[] = [];
    simulated.refusesStep = (step) => {
      const isRefused = refused.length > 0 || step.do === 'configure-link';
      if (isRefused) refused.push(step.do);
      return isRefused;
    };
    const error = await passNetwork(simulated.tools, 'cpn0', { map: moved('"2"'), resolved: null }, options).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(CommandFailed);
    expect(refused).toEqual(['configure-link', 'configure-device']);
    expect((error as Error).message).toContain('configure-link');
    expect(simulated.logged).toContainEqual({
      level: 'warn',
      facts: { interface: 'cpn0', error: expect.stringContaining('configure-device') },
      message: 'a change failed, and its rollback failed too',
    });
  });
});

describe('a change that takes away the network itself', () => {
  it('starts the sessions again after its rollback, which its forced handshakes ended', async () => {
    const simulated = await startDesk([3, 4, 5], [2]);
    const triggers: number[] = [];
    simulated.onHandshakeTrigger = () => void triggers.push(simulated.steps.length);
    const starred = mapAt('"2"', [relay, peer(3), peer(4), peer(5)]);
    simulated.service.mapReplies = [fail(gone)];
    const pass = passNetwork(simulated.tools, 'cpn0', { map: starred, resolved: null }, options);
    await expect(pass).rejects.toBeInstanceOf(NotConfirmed);
    expect(simulated.steps.some((step) => step.do === 'renew-peers')).toBe(true);
    expect(triggers.at(-1)).toBe(simulated.steps.length);
  });
});

it('peers that expired are no loss that must be confirmed, though they are most of the network', async () => {
  const at = Date.parse('2031-01-01T00:00:00Z');
  const [known, lasting] = [[3, 4, 5], relay];
  const map = mapAt('"1"', [
    lasting,
    ...known.map((number) => peer(number, { endpoint: dialled(number), expiresAt: at })),
  ]);
  const simulated = await SimulatedHost.with(joinedTo(map));
  const clock = { service: at - 5_000, uptime: simulated.tools.uptime() };
  const sync = { mode: 'push', lastSuccess: null, error: null, refused: null, clock } as const;
  await simulated.tools.store.amendNotes('cpn0', { sync });
  await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
  simulated.updatePeer(2, { latestHandshake: secondsOf(simulated) });
  simulated.service.mapReplies = [fail(gone)];
  simulated.seconds += 6;
  await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
  expect(simulated.actual.device?.peers.map(({ publicKey }) => publicKey)).toEqual([lasting.publicKey]);
  expect(simulated.service.mapRequests).toEqual([]);
});

describe('a map that is rolled back leaves nothing of it on the host, but for what the receipt has', () => {
  const everything = parsePrefix('0.0.0.0/0');
  const full = { ...defaults, allowRoutes: [everything], strictTunnel: true, hosts: true };
  const sysctls = {
    ...{
      [allForwardingKey]: '0',
      [ipv6Key]: '0',
      [markedSourceKey]: '0',
      [commonFilterKey]: '1',
      [sourceRouteKey]: '1',
    },
    ...{ [forwardingKey('eth0')]: '0', [forwardingKey('eth1')]: '0' },
  };
  const map = mapAt('"1"', [relay]);
  const asConnector = map.peers.map((each) => (each.id === 1 ? { ...each, type: 'connector' as const } : each));
  const lan = ['192.168.50.0/24', '192.168.60.0/24'].map((text) => parsePrefix(text));

  it.each<[string, Partial<NetworkMap>, Partial<Joined>]>([
    ['a connector', { peers: asConnector, routes: lan }, { options: full }],
    ['a host with a full tunnel', { routes: [everything, ...lan] }, { options: full }],
    ['a host with another route', { routes: lan }, {}],
  ])('that makes it %s', async (_, changes, state) => {
    const simulated = await SimulatedHost.with(joinedTo(map, state));
    simulated.actual = { ...bare, sysctls };
    await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
    simulated.updatePeer(2, { latestHandshake: secondsOf(simulated) - 10 });
    const [{ sysctls: _before, ...before }, file] = [simulated.actual, await simulated.tools.store.readConfig('cpn0')];
    simulated.service.mapReplies = [fail(gone)];
    const pass = passNetwork(
      simulated.tools,
      'cpn0',
      { map: { ...map, ...changes, revision: '"2"' }, resolved: null },
      options,
    );
    await expect(pass).rejects.toBeInstanceOf(NotConfirmed);
    expect(simulated.steps.length).toBeGreaterThan(0);
    const { sysctls: left, ...actual } = simulated.actual;
    expect(actual).toEqual(before);
    expect(await simulated.tools.store.readConfig('cpn0')).toBe(file);
    const { receipt } = await simulated.state();
    const recorded = receipt.flatMap((entry) => (entry.made === 'sysctl' ? [[entry.key, entry.before]] : []));
    const others = Object.entries(left).filter(([key]) => !key.includes('.cpn0.'));
    expect(Object.fromEntries([...others, ...recorded])).toEqual(sysctls);
    await cleanUp(simulated.tools, await simulated.state());
    expect(simulated.actual.sysctls).toEqual(sysctls);
    expect(simulated.actual).toMatchObject({ link: null, device: null, routes: [], rules: [], firewall: null });
  });
});

it('a new map in which most peers had expired before is confirmed by the control plane, as any other', async () => {
  const at = Date.parse('2031-01-01T00:00:00Z');
  const expiring = [3, 4, 5].map((number) => peer(number, { endpoint: dialled(number), expiresAt: at }));
  const known = mapAt('"1"', [relay, ...expiring]);
  const simulated = await SimulatedHost.with(joinedTo(known));
  const clock = { service: at - 5_000, uptime: simulated.tools.uptime() };
  const sync = { mode: 'push', lastSuccess: null, error: null, refused: null, clock } as const;
  await simulated.tools.store.amendNotes('cpn0', { sync });
  await passNetwork(simulated.tools, 'cpn0', noUpdate, options);
  simulated.updatePeer(2, { latestHandshake: secondsOf(simulated) });
  simulated.seconds += 6;
  const newer = { ...known, revision: '"2"', routes: ['192.168.60.0/24'].map((text) => parsePrefix(text)) };
  simulated.service.mapReplies = [answerWith(newer)];
  // No peer answers within the tunnel.
  await passNetwork(simulated.tools, 'cpn0', { map: newer, resolved: null }, options);
  expect((await simulated.state()).membership.map.revision).toBe('"2"');
});

describe('an answer that confirms', () => {
  const confirming = (simulated: SimulatedHost, number: number, isReached: boolean) => {
    const { publicKey, address } = peer(number);
    return { publicKey, address, latestHandshake: secondsOf(simulated) - 10, isReached };
  };

  it('comes from a peer to which the tunnel leads after the change', async () => {
    const simulated = await startDesk([3], [2, 3]);
    const state = await simulated.state();
    const kept = state.membership.map.peers.slice(1);
    const tunnel = (allowed: number) =>
      kept.map(({ publicKey }) => ({
        publicKey,
        allowedIps: publicKey === peer(3).publicKey ? [] : [`10.77.0.${allowed}/32`],
      }));
    const find = (allowed: number) =>
      findConfirmingPeers(
        { state, actual: simulated.actual, desired: { config: { peers: tunnel(allowed) } } } as unknown as Evaluation,
        secondsOf(simulated),
      ).map(({ address, isReached }) => [address, isReached]);
    expect(find(2)).toEqual([
      ['10.77.0.2', true],
      ['10.77.0.3', false],
    ]);
    simulated.reachable.add('10.77.0.3');
    const ask = (isReached: boolean) =>
      isConfirmed(
        simulated.tools,
        state,
        { peers: [confirming(simulated, 3, isReached)], includesApi: false },
        options,
      );
    expect([await ask(false), await ask(true)]).toEqual([false, true]);
  });

  it('to a forced handshake comes from such a peer, too', async () => {
    const simulated = await startDesk([3], [2, 3]);
    const planned = await evaluateNetwork(simulated.tools, await simulated.state());
    simulated.onHandshakeTrigger = () => simulated.updatePeer(3, { latestHandshake: secondsOf(simulated) });
    const ask = (isReached: boolean) =>
      isLossConfirmed(simulated.tools, planned, [confirming(simulated, 3, isReached)], options);
    expect([await ask(false), await ask(true)]).toEqual([false, true]);
  });

  it('is needed of a peer where the control plane gave this host no token, unless there is none', async () => {
    const simulated = await startDesk([3], [2, 3]);
    const { membership, ...state } = await simulated.state();
    const alone = { ...state, membership: { ...membership, accessToken: null } };
    const ask = (peers: readonly ReturnType<typeof confirming>[]) =>
      isConfirmed(simulated.tools, alone, { peers, includesApi: true }, options);
    expect([await ask([]), await ask([confirming(simulated, 3, true)])]).toEqual([true, false]);
    expect(simulated.service.mapRequests).toEqual([]);
  });

  it('may be any of several replies within the time, and a request for it ends with the signal', async () => {
    const simulated = await startDesk([], [2]);
    const state = await simulated.state();
    const { signal } = new AbortController();
    simulated.service.mapReplies = [fail(gone), fail(gone), answerWith(state.membership.map)];
    expect(await isMapReceived(simulated.tools, state, { ...options, signal })).toBe(true);
    expect(simulated.service.mapRequests).toHaveLength(3);
    for (const { wait } of simulated.service.mapRequests) expect(wait).toEqual({ seconds: 0, signal });
    simulated.service.mapReplies = [fail(gone)];
    expect(await isMapReceived(simulated.tools, state, { withinMs: 1_000, signal })).toBe(false);
  });
});
