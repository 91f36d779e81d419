import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { joinNetwork } from '../../../src/app/join/join.ts';
import type { JoinRequest } from '../../../src/app/join/join-request.ts';
import type { NamedOptions } from '../../../src/app/join/kept-options.ts';
import { leaveNetworks } from '../../../src/app/leave/leave.ts';
import { passNetwork } from '../../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../../src/app/reconcile/state-update.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Refused, Unreachable, WrongUsage } from '../../../src/core/errors/index.ts';
import { parseEndpoint } from '../../../src/core/net/endpoint.ts';
import { parseProxy } from '../../../src/core/net/proxy.ts';
import type { Joined, State } from '../../../src/store/state/state.ts';
import { dialled, keyPair, options, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith, fail } from '../simulated-service.ts';

const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
const token = new Secret('cpn_x');
const endpoint = parseEndpoint('203.0.113.1:51999');
const chosen = {
  ...options,
  ...{ listenPort: 51_999, mtu: 1300, acceptRoutes: false, hosts: true, pin: 'strict' as const, rotateEvery: 86_400 },
  allowRoutes: [prefix('10.9.0.0/16')],
};
const secret = new Secret(Buffer.alloc(32, 1).toString('base64'));

/** A host that joined with this key and chose much, and is up. */
async function startDesk(changes: Partial<State> = {}) {
  const { enrollment } = joinedTo(map);
  const tokenHash = createHash('sha256').update(token.reveal()).digest('hex');
  const state = { enrollment: { ...enrollment, endpoint, tokenHash }, options: chosen, networkSecret: secret };
  const simulated = await SimulatedHost.with(joinedTo(map, { ...state, ...(changes as Partial<Joined>) }));
  simulated.service.mapReplies = [answerWith(map)];
  if (changes.membership !== null) await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
  const warnings: string[] = [];
  simulated.tools.warn = (text) => void warnings.push(text);
  const joinAgain = (named: NamedOptions[] = [], request: Partial<JoinRequest> = {}) =>
    joinNetwork(simulated.tools, {
      ...{ token, service: joinedTo(map).service, name: 'host', type: 'origin', endpoint: null, interface: null },
      ...{ options, named: new Set(named), networkSecret: null, personalToken: null },
      ...{ isUnattended: false, handshakeTimeoutMs: 0, ...request },
    });
  return { simulated, warnings, joinAgain };
}

const known = async (simulated: SimulatedHost) => {
  const { options, enrollment, networkSecret } = await simulated.state();
  return { options, enrollment, networkSecret: networkSecret?.reveal() };
};

describe('a join that is repeated with the same key', () => {
  it('keeps every option that is not given', async () => {
    const { simulated, joinAgain } = await startDesk();
    const before = await known(simulated);
    await joinAgain();
    expect(await known(simulated)).toEqual(before);
    expect([simulated.actual.link?.mtu, simulated.actual.device?.listenPort]).toEqual([1300, 51_999]);
  });

  it('warns of a proxy that only a route of the network leads to', async () => {
    const lan = prefix('192.168.50.0/24');
    const withRoute = mapAt('"1"', [peer(2, { type: 'connector', endpoint: dialled(2) })], { routes: [lan] });
    const { membership } = joinedTo(withRoute);
    const { simulated, warnings, joinAgain } = await startDesk({ membership, options });
    simulated.service.mapReplies = [answerWith(withRoute)];
    const proxy = parseProxy('http://192.168.50.9:3128', '--proxy');
    await joinAgain(['proxy'], { service: { ...joinedTo(map).service, proxy } });
    expect(warnings).toContainEqual(expect.stringContaining('is reached through the route 192.168.50.0/24'));
  });

  it('changes the options that are given, and those alone', async () => {
    const { simulated, joinAgain } = await startDesk();
    const before = await known(simulated);
    const other = new Secret(Buffer.alloc(32, 2).toString('base64'));
    const given = { ...options, mtu: 1400, allowRoutes: [prefix('10.8.0.0/16')] };
    await joinAgain(['mtu', 'allowRoutes', 'networkSecret'], { options: given, networkSecret: other });
    const { mtu, allowRoutes } = given;
    const expected = { ...before, options: { ...chosen, mtu, allowRoutes }, networkSecret: other.reveal() };
    expect(await known(simulated)).toEqual(expected);
  });

  it('accepts name, type and endpoint unchanged', async () => {
    const { simulated, joinAgain } = await startDesk();
    const before = await known(simulated);
    await joinAgain(['name', 'type', 'endpoint'], { name: 'peer-1', endpoint });
    expect(await known(simulated)).toEqual(before);
  });

  it.each([
    ['name', { name: 'edge' }, '--name peer-1, not edge; leave out --name; "cpn set cpn0 --name edge" changes it'],
    [
      'endpoint',
      { endpoint: parseEndpoint('203.0.113.1:52000') },
      '--endpoint 203.0.113.1:51999, not 203.0.113.1:52000; leave out --endpoint; "cpn set cpn0 --endpoint 203.0.113.1:52000" changes it',
    ],
    [
      'type',
      { type: 'connector' },
      '--type origin, not connector; leave out --type; to change it, "cpn leave cpn0" and join with a new key',
    ],
  ] as const)('refuses another %s, and changes nothing', async (flag, request, problem) => {
    const { simulated, joinAgain } = await startDesk();
    const before = await simulated.state();
    const joining = joinAgain([flag, 'mtu'], { ...request, options: { ...options, mtu: 1400 } });
    await expect(joining).rejects.toThrow(`the join of cpn0 with this key has ${problem}`);
    await expect(joining).rejects.toBeInstanceOf(WrongUsage);
    expect(await simulated.state()).toEqual(before);
  });
});

describe('a join that is repeated after the host was removed or suspended', () => {
  const { membership } = joinedTo(map);
  const refusal = (status: number) => new Refused(status, 'reading the network', 'the token is unknown', 'x');

  it.each([401, 404])('fails on a %i with the hint to use a new key, and changes nothing', async (status) => {
    const { simulated, joinAgain } = await startDesk();
    const before = [await simulated.state(), simulated.steps.length];
    simulated.service.mapReplies = [fail(refusal(status))];
    const joining = joinAgain(['mtu'], { options: { ...options, mtu: 1400 } });
    await expect(joining).rejects.toThrow(/this host is no longer in network office; .* "cpn join" with a new key/);
    await expect(joining).rejects.toMatchObject({ name: 'Refused', status });
    expect([await simulated.state(), simulated.steps.length]).toEqual(before);
  });

  it('ends with the reason of the control plane where the host is suspended, and changes nothing', async () => {
    const { simulated, joinAgain, warnings } = await startDesk();
    const before = [await simulated.state(), simulated.steps.length];
    simulated.service.mapReplies = [
      fail(new Refused(403, 'reading the network', 'this peer is suspended', 'ask an admin')),
    ];
    const joining = joinAgain(['mtu'], { options: { ...options, mtu: 1400 } });
    await expect(joining).rejects.toThrow('this peer is suspended');
    await expect(joining).rejects.toMatchObject({ name: 'Refused', status: 403 });
    expect([await simulated.state(), simulated.steps.length, warnings]).toEqual([...before, []]);
  });

  it('continues with a warning while the control plane is unreachable', async () => {
    const { simulated, joinAgain, warnings } = await startDesk();
    const attempts = { delivered: false, heard: false, retryAfterMs: null };
    simulated.service.mapReplies = [fail(new Unreachable('https://x', 'gone', attempts))];
    const { state } = await joinAgain();
    expect(state.interface).toBe('cpn0');
    expect(warnings.join()).toContain('is unreachable: gone; cpn0 uses the last received map of network office');
  });

  it('reads the network with the personal token that is given, and not with the one that is refused', async () => {
    const former = { ...membership, accessToken: null, personalToken: new Secret('old') };
    const { simulated, joinAgain } = await startDesk({ membership: former });
    const { connect } = simulated.tools;
    simulated.tools.connect = async (...known) => ({
      ...(await connect(...known)),
      async readMap(_, token) {
        if (token.reveal() !== 'new') throw refusal(401);
        return { map: null, waited: false };
      },
    });
    await expect(joinAgain()).rejects.toMatchObject({ name: 'Refused', status: 401 });
    const { state } = await joinAgain([], { personalToken: new Secret('new') });
    expect(state.membership.personalToken?.reveal()).toBe('new');
    expect((await simulated.state()).membership.personalToken?.reveal()).toBe('new');
  });
});

it('leaving a network whose join was not finished names the peer that may stay', async () => {
  const { simulated, joinAgain, warnings } = await startDesk({ membership: null });
  const lost = { delivered: true, heard: false, retryAfterMs: null };
  simulated.service.onEnroll = () => {
    throw new Unreachable('https://x', 'gone', lost);
  };
  await expect(joinAgain()).rejects.toThrow('gone');
  expect(await leaveNetworks(simulated.tools)).toEqual([{ interface: 'cpn0', removed: false, former: false }]);
  const { publicKey } = keyPair(1);
  expect(warnings).toEqual([
    `the join of cpn0 was not finished; a peer peer-1 with the public key ${publicKey} may stay in its network at https://203.0.113.99: "cpn peer list" shows it, and "cpn peer remove" takes it out`,
  ]);
});

describe('a join that is repeated', () => {
  const elsewhere = { url: 'https://203.0.113.98', insecureHttp: false };
  const hash = createHash('sha256').update(token.reveal()).digest('hex');

  it('leaves a tunnel that was up, and could not be changed', async () => {
    const { simulated, joinAgain } = await startDesk();
    const { link, firewall } = simulated.actual;
    simulated.refusesStep = (step) => step.do === 'configure-link';
    await expect(joinAgain(['mtu'], { options: { ...options, mtu: 1400 } })).rejects.toThrow('exited with 1');
    expect([simulated.actual.link, simulated.actual.firewall]).toEqual([link, firewall]);
  });

  it('continues the earliest of several with the key, at this control plane, and removes the others', async () => {
    const { simulated, joinAgain } = await startDesk();
    const { tools } = simulated;
    const state = await simulated.state();
    const rest = { enrollment: { ...state.enrollment, tokenHash: hash }, membership: null };
    const later = '2027-01-01T00:00:00.000Z';
    await tools.store.write({ ...state, ...rest, interface: 'cpn1', createdAt: later });
    const earlier = '2020-01-01T00:00:00.000Z';
    await tools.store.write({ ...state, ...rest, interface: 'cpn2', createdAt: earlier, service: elsewhere });
    tools.host.observe = async (wanted) => ({ ...simulated.actual, ...(wanted.link === 'cpn0' ? {} : { link: null }) });
    expect((await joinAgain()).state.interface).toBe('cpn0');
    expect((await tools.store.list()).states.map((each) => each.interface)).toEqual(['cpn0', 'cpn2']);
  });

  it('brings up a network that was taken down, or deleted', async () => {
    const deletion = { at: '2026-01-01T00:00:00.000Z', resumes: false };
    for (const changes of [{}, { deletion }]) {
      const { simulated, joinAgain } = await startDesk();
      await simulated.tools.store.write({ ...(await simulated.state()), enabled: false, ...changes });
      await joinAgain();
      const { enabled, deletion: left } = await simulated.state();
      expect([enabled, left]).toEqual([true, undefined]);
    }
  });

  it('forgets the results of probes that are given now, and of no others', async () => {
    for (const [named, dead] of [
      [['probes'], []],
      [[], [prefix('10.9.0.0/16')]],
    ] as const) {
      const { simulated, joinAgain } = await startDesk();
      await simulated.tools.store.amendNotes('cpn0', { dead: [prefix('10.9.0.0/16')] });
      await joinAgain([...named]);
      expect((await simulated.tools.store.readNotes('cpn0')).dead).toEqual(dead);
    }
  });

  it('opens no port that the kernel chooses', async () => {
    const { enrollment } = joinedTo(map);
    const { simulated, joinAgain } = await startDesk({
      enrollment: { ...enrollment, tokenHash: hash },
      options,
    });
    const before = await simulated.state();
    const opened = { ...options, openFirewall: true };
    await expect(joinAgain(['openFirewall'], { options: opened })).rejects.toThrow('needs the port that peers dial');
    expect(await simulated.state()).toEqual(before);
  });

  it('leaves the port of the endpoint for another one that is given, and follows it otherwise', async () => {
    const { simulated, joinAgain } = await startDesk();
    await joinAgain(['listenPort'], { options: { ...options, listenPort: 40_123 } });
    expect((await simulated.state()).options.listenPort).toBe(40_123);
    await joinAgain(['listenPort'], { options: { ...options, listenPort: null } });
    expect((await simulated.state()).options.listenPort).toBe(51_999);
  });

  it('removes the network secret only if that is given', async () => {
    const { simulated, joinAgain } = await startDesk();
    await joinAgain([], { networkSecret: new Secret(Buffer.alloc(32, 2).toString('base64')) });
    expect((await simulated.state()).networkSecret?.reveal()).toBe(secret.reveal());
    await joinAgain(['networkSecret'], { networkSecret: null });
    expect((await simulated.state()).networkSecret).toBeNull();
  });

  it('saves what the service describes now', async () => {
    const { simulated, joinAgain } = await startDesk();
    simulated.service.onDescribe = async () => ({ features: ['map-wait'], etag: null });
    await joinAgain();
    expect((await simulated.state()).features).toEqual(['map-wait']);
  });

  it('is on no interface but its own', async () => {
    const { simulated, joinAgain } = await startDesk();
    await expect(joinAgain([], { interface: 'cpn5' })).rejects.toThrow('this key has joined as cpn0 already');
    expect((await joinAgain([], { interface: 'cpn0' })).state.interface).toBe('cpn0');
    expect((await simulated.tools.store.list()).states).toHaveLength(1);
  });
});
