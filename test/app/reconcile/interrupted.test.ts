import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { joinNetwork } from '../../../src/app/join/join.ts';
import type { JoinRequest } from '../../../src/app/join/join-request.ts';
import { acceptPeer, findPeer } from '../../../src/app/networks/accept.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { bringUp } from '../../../src/app/networks/up.ts';
import { setOptions } from '../../../src/app/options/set-options.ts';
import { withMembership } from '../../../src/app/pins.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Interrupted } from '../../../src/core/errors/index.ts';
import { ipv6Key } from '../../../src/core/host-state/sysctl-keys.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import { markedSourceKey } from '../../../src/core/routing/tunnel-rules.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { bare, dialled, keyPair, options, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt, noOptionChanges as none } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

const relay = peer(2, { type: 'connector', endpoint: dialled(2) });
const map = mapAt('"1"', [relay]);
/** Moves a route onto this host, and so must be confirmed. */
const newer = mapAt('"2"', [relay], { routes: [prefix('192.168.50.0/24'), prefix('192.168.60.0/24')] });
const key = new Secret('cpn_x');

/** A host that is up and has a handshake with its peer. */
async function startDesk(changes: Partial<Joined> = {}): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(joinedTo(map, changes));
  simulated.service.mapReplies = [answerWith(map)];
  simulated.onHandshakeTrigger = () => {};
  await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  refreshHandshake(simulated);
  simulated.steps.length = 0;
  return simulated;
}

const refreshHandshake = (simulated: SimulatedHost) =>
  simulated.updatePeer(2, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });

/** A signal comes with the first step of a change, and others with all that follow. */
function interrupt(simulated: SimulatedHost): void {
  simulated.refusesStep = () => {
    simulated.interrupting.abort(new Interrupted('SIGHUP'));
    return false;
  };
}

const look = async (simulated: SimulatedHost) => ({
  ...(await simulated.state()),
  receipt: [],
  file: await simulated.tools.store.readConfig('cpn0'),
  link: simulated.actual.link,
  routes: simulated.actual.routes,
  peers: simulated.actual.device?.peers.map(({ publicKey, allowedIps }) => ({ publicKey, allowedIps })),
});

describe('after a signal that comes before a change is confirmed, everything is what it was', () => {
  it('cpn set, also at the control plane', async () => {
    const simulated = await startDesk();
    const before = await look(simulated);
    interrupt(simulated);
    const changes = { ...none, options: { mtu: 1300 }, endpoint: parseEndpoint('203.0.113.1:51999'), name: 'edge' };
    await expect(setOptions(simulated.tools, undefined, changes)).rejects.toBeInstanceOf(Interrupted);
    expect(simulated.steps.length).toBeGreaterThan(1);
    expect(await look(simulated)).toEqual(before);
    expect(simulated.service.descriptions).toEqual([
      { endpoint: changes.endpoint, name: 'edge' },
      { endpoint: null, name: 'peer-1' },
    ]);
  });

  it('cpn set, before anything was changed', async () => {
    const simulated = await startDesk();
    simulated.interrupting.abort(new Interrupted('SIGINT'));
    await expect(setOptions(simulated.tools, undefined, { ...none, name: 'edge' })).rejects.toBeInstanceOf(Interrupted);
    expect([simulated.service.descriptions, simulated.steps]).toEqual([[], []]);
  });

  it('cpn reconcile restores the host', async () => {
    const simulated = await startDesk();
    const before = await look(simulated);
    simulated.service.mapReplies = [answerWith(newer)];
    interrupt(simulated);
    await expect(reconcileNetworks(simulated.tools)).rejects.toBeInstanceOf(Interrupted);
    expect(simulated.steps.length).toBeGreaterThan(1);
    expect(await look(simulated)).toEqual(before);
  });

  it('cpn up restores the host', async () => {
    const simulated = await startDesk({ drained: true });
    await elsewhere(simulated);
    const before = await look(simulated);
    interrupt(simulated);
    await expect(bringUp(simulated.tools)).rejects.toBeInstanceOf(Interrupted);
    expect(simulated.steps.length).toBeGreaterThan(1);
    expect(await look(simulated)).toEqual(before);
  });

  it('cpn up of a full tunnel that was down leaves nothing of it', async () => {
    const everything = prefix('0.0.0.0/0');
    const full = mapAt('"1"', [relay], { routes: [everything] });
    const changes = { enabled: false, options: { ...options, allowRoutes: [everything], hosts: true } };
    const simulated = await SimulatedHost.with(joinedTo(full, changes));
    const sysctls = { [ipv6Key]: '0', [markedSourceKey]: '0' };
    simulated.actual = { ...bare, sysctls, hosts: { block: null, trouble: null } };
    simulated.service.mapReplies = [answerWith(full)];
    const before = simulated.actual;
    const made = new Set<string>();
    simulated.refusesStep = ({ do: kind }) => {
      made.add(kind);
      simulated.interrupting.abort(new Interrupted('SIGINT'));
      return false;
    };
    await expect(bringUp(simulated.tools)).rejects.toBeInstanceOf(Interrupted);
    expect([...made]).toEqual(expect.arrayContaining(['create-link', 'set-firewall', 'set-sysctl', 'set-hosts']));
    expect(simulated.actual).toEqual(before);
    expect(await simulated.state()).toMatchObject({ enabled: false, receipt: [] });
  });

  it('cpn join with the same key restores the host', async () => {
    const tokenHash = createHash('sha256').update(key.reveal()).digest('hex');
    const { enrollment } = joinedTo(map);
    const simulated = await startDesk({ enrollment: { ...enrollment, tokenHash } });
    await elsewhere(simulated);
    const before = await look(simulated);
    interrupt(simulated);
    const request: JoinRequest = {
      ...{ token: key, service: before.service, name: 'peer-1', type: 'origin', endpoint: null, interface: null },
      ...{
        options: { ...options, mtu: 1300 },
        named: new Set(['mtu'] as const),
        networkSecret: null,
        personalToken: null,
        isUnattended: false,
        handshakeTimeoutMs: 0,
      },
    };
    await expect(joinNetwork(simulated.tools, request)).rejects.toBeInstanceOf(Interrupted);
    expect(simulated.steps.length).toBeGreaterThan(1);
    expect(await look(simulated)).toEqual(before);
  });

  it('cpn accept restores the host', async () => {
    const stranger = { ...relay, publicKey: keyPair(22).publicKey };
    const { membership, ...state } = joinedTo(map, { options: { ...options, pin: 'strict' } });
    const simulated = await startDesk(withMembership(state as Joined, membership));
    simulated.service.mapReplies = [answerWith(mapAt('"2"', [stranger]))];
    await reconcileNetworks(simulated.tools);
    const before = await look(simulated);
    const candidate = await findPeer(simulated.tools, 'peer-2', undefined);
    expect(candidate.mismatch).not.toBeNull();
    simulated.service.mapReplies = [answerWith({ ...newer, revision: '"3"', peers: mapAt('"3"', [stranger]).peers })];
    interrupt(simulated);
    await expect(acceptPeer(simulated.tools, candidate)).rejects.toBeInstanceOf(Interrupted);
    expect(simulated.steps.length).toBeGreaterThan(1);
    expect(await look(simulated)).toEqual(before);
  });
});

/** The host has another address than it should have: to change that is to take the network away. */
async function elsewhere(simulated: SimulatedHost): Promise<void> {
  const text = (await simulated.tools.store.readConfig('cpn0')) ?? '';
  await simulated.tools.store.writeConfig('cpn0', text.replace('10.77.0.1/24', '10.77.0.99/24'));
  const { link } = simulated.actual;
  const addresses = link?.addresses.map((each) => ({ ...each, address: '10.77.0.99' as never })) ?? [];
  simulated.actual = { ...simulated.actual, link: link && { ...link, addresses } };
}
