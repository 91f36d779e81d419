import { describe, expect, it } from 'vitest';
import type { OptionChanges } from '../../../src/app/networks/option-changes.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { describeMove, withMove } from '../../../src/app/options/move-service.ts';
import { planOptions, setOptions } from '../../../src/app/options/set-options.ts';
import { type CpnError, Interrupted, Refused, Unreachable } from '../../../src/core/errors/index.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import { parseAddress } from '../../../src/core/net/cidr.ts';
import { parseProxy } from '../../../src/core/net/proxy.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { dialled, keyPair, peer, prefix } from '../../core/samples.ts';
import { joinedTo, mapAt, noOptionChanges } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith, fail, type MapReply } from '../simulated-service.ts';

const before = 'https://203.0.113.99';
const service = { url: 'https://203.0.113.98', insecureHttp: false };
const move: OptionChanges = { ...noOptionChanges, service };
const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
/** What the control plane has at its new address: a history that goes on otherwise. */
const moved = mapAt('"1-restored"', [peer(2, { endpoint: dialled(2) }), peer(3, { endpoint: dialled(3) })]);
const gone = new Unreachable(service.url, 'refused', { delivered: false, heard: true, retryAfterMs: null });

/** A host that is up, and whose former control plane does not answer any more. */
async function startDesk(there: readonly MapReply[], changes: Partial<Joined> = {}): Promise<SimulatedHost> {
  const simulated = await SimulatedHost.with(joinedTo(map, changes));
  simulated.service.mapReplies = [answerWith(map)];
  await reconcileNetworks(simulated.tools);
  if (simulated.actual.device)
    simulated.updatePeer(2, { latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000) });
  simulated.steps.length = 0;
  simulated.service.mapRequests.length = 0;
  const answers = [...there];
  simulated.service.mapReplies = [
    (revision, wait) => {
      if (simulated.service.knownService?.service.url !== service.url) throw gone;
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      if (answer === undefined) throw new Error('it is asked too often');
      return answer(revision, wait);
    },
  ];
  return simulated;
}

const set = (simulated: SimulatedHost) =>
  setOptions(simulated.tools, undefined, move).catch((error: CpnError) => error);

describe('a control plane that moved', () => {
  it('first gets a request for the whole map, then requests by its revision', async () => {
    const simulated = await startDesk([answerWith(moved)], { features: [] });
    const report = await setOptions(simulated.tools, undefined, move);
    expect(report.changes[0]).toMatchObject({ action: 'update', kind: 'api', before, after: service.url });
    expect(report.changes.map(({ kind }) => kind)).toContain('peer');
    const state = await simulated.state();
    expect(state).toMatchObject({ service, membership: { map: { revision: moved.revision } } });
    expect(state.keyPair).toEqual(joinedTo(map).keyPair);
    expect(state.features).toContain('map-wait');
    expect(simulated.service.mapRequests.map(({ revision }) => revision)).toEqual([
      null,
      moved.revision,
      moved.revision,
    ]);
    expect(simulated.actual.device?.peers).toHaveLength(2);
  });

  it('must report another range of the network twice', async () => {
    const wider = { ...moved, cidr: prefix('10.0.0.0/8') };
    const simulated = await startDesk([answerWith(wider)]);
    await setOptions(simulated.tools, undefined, move);
    const [report] = await reconcileNetworks(simulated.tools);
    expect(report?.unsynced?.message).toContain('has the range 10.0.0.0/8, not 10.77.0.0/24');
    expect((await simulated.state()).membership.map.cidr).toBe('10.77.0.0/24');
    expect(simulated.actual.link?.addresses).toMatchObject([{ length: 24 }]);
  });

  it('gets only the request for the map in a dry run', async () => {
    const simulated = await startDesk([answerWith(moved)]);
    const known = await simulated.state();
    expect((await planOptions(simulated.tools, undefined, move)).changes[0]).toMatchObject({ kind: 'api' });
    expect([simulated.steps, await simulated.state(), simulated.service.mapRequests.length]).toEqual([[], known, 1]);
  });

  it('is written down for a network that is down', async () => {
    const simulated = await startDesk([answerWith(moved)], { enabled: false });
    await setOptions(simulated.tools, undefined, move);
    expect([(await simulated.state()).service, simulated.steps]).toEqual([service, []]);
  });

  it('is followed, though most peers stay until it leaves them out twice', async () => {
    const alone = mapAt('"9"', []);
    const simulated = await startDesk([answerWith(alone)]);
    await setOptions(simulated.tools, undefined, move);
    expect(await simulated.state()).toMatchObject({ service, membership: { map: { revision: null } } });
    expect(simulated.actual.device?.peers).toHaveLength(1);
    expect((await simulated.tools.store.readNotes('cpn0')).held).not.toBeNull();
  });
});

const others: [string, NetworkMap, RegExp][] = [
  ['has another network under the id', { ...moved, id: 8 }, /has no network 7/],
  ['lists another key', { ...moved, peers: [peer(1, { publicKey: keyPair(5).publicKey })] }, /public key of this host/],
  [
    'lists the key with another address',
    { ...moved, peers: [peer(1, { address: parseAddress('10.77.0.200') })] },
    /10\.77\.0\.200 .* and here it has 10\.77\.0\.1/,
  ],
];

const sent = `the token of this host was sent to ${service.url}: if you do not trust that URL, to revoke it, "cpn leave cpn0"`;

describe('nothing changes where the address', () => {
  it.each(others)('%s', async (_, answered, problem) => {
    const simulated = await startDesk([answerWith(answered)]);
    const known = await simulated.state();
    const failure = await set(simulated);
    expect(failure).toMatchObject({ name: 'CannotMove', message: expect.stringMatching(problem) });
    expect(failure).toMatchObject({ message: expect.stringContaining(sent) });
    expect([simulated.steps, await simulated.state(), simulated.service.mapRequests.length]).toEqual([[], known, 1]);
  });

  it('refuses the token of this host', async () => {
    const simulated = await startDesk([fail(new Refused(401, 'reading', 'no', 'join again'))]);
    const known = await simulated.state();
    expect(await set(simulated)).toMatchObject({
      name: 'Refused',
      message: expect.stringMatching(new RegExp(`does not list this host.*"cpn leave cpn0", and join there.*${sent}`)),
    });
    expect(await simulated.state()).toEqual(known);
  });

  it('refuses this host with a reason', async () => {
    const suspended = new Refused(403, 'reading', 'this peer is suspended', null);
    const simulated = await startDesk([fail(suspended)]);
    expect(await set(simulated)).toBe(suspended);
  });

  it('does not respond to the request', async () => {
    const simulated = await startDesk([fail(gone)]);
    const known = await simulated.state();
    expect(await set(simulated)).toBe(gone);
    expect(await simulated.state()).toEqual(known);
  });

  it('would get a request without a token', async () => {
    const membership = { ...joinedTo(map).membership, accessToken: null };
    const simulated = await startDesk([answerWith(moved)], { membership });
    expect(await set(simulated)).toMatchObject({
      name: 'CannotMove',
      message: expect.stringMatching(/has none(?!.*was sent)/),
    });
    expect(simulated.service.mapRequests).toEqual([]);
  });

  it('does not send the map again: a peer that answers does not confirm it', async () => {
    const simulated = await startDesk([answerWith(moved), fail(gone)]);
    simulated.reachable.add(peer(2).address);
    const known = await simulated.state();
    expect(await set(simulated)).toMatchObject({ name: 'NotKept', message: expect.stringContaining(service.url) });
    expect({ ...(await simulated.state()), receipt: [] }).toEqual({ ...known, receipt: [] });
    expect(simulated.actual.device?.peers).toHaveLength(1);
  });

  it('is not confirmed before a signal', async () => {
    const simulated = await startDesk([
      answerWith(moved),
      () => {
        simulated.interrupting.abort(new Interrupted('SIGHUP'));
        throw gone;
      },
    ]);
    const known = await simulated.state();
    expect(await set(simulated)).toBeInstanceOf(Interrupted);
    expect({ ...(await simulated.state()), receipt: [] }).toEqual({ ...known, receipt: [] });
    expect(simulated.actual.device?.peers).toHaveLength(1);
  });
});

describe('what a move keeps, forgets and reports', () => {
  const proxy = parseProxy('http://proxy.example.net:3128', '--proxy');
  const known = { url: before, insecureHttp: false, proxy, authorities: ['PEM'], listener: 7 };
  const down = (changes: Partial<Joined> = {}) =>
    startDesk([answerWith(moved)], { enabled: false, service: known, ...changes });

  it('keeps proxy and CAs of a control plane at https', async () => {
    const simulated = await down();
    await setOptions(simulated.tools, undefined, move);
    expect((await simulated.state()).service).toEqual({ ...service, proxy, authorities: ['PEM'] });
  });

  it('drops the CAs with TLS', async () => {
    const simulated = await down();
    const plain = { url: 'http://203.0.113.98', insecureHttp: true };
    simulated.service.mapReplies = [answerWith(moved)];
    await setOptions(simulated.tools, undefined, { ...move, service: plain });
    expect((await simulated.state()).service).toEqual({ ...plain, proxy });
  });

  it.each([
    ['another address', service.url, undefined],
    ['the same address', before, 7],
  ])('takes the recorded user of a listening program only at %s', async (_, url, expected) => {
    const simulated = await down();
    simulated.service.mapReplies = [answerWith(moved)];
    const asked: unknown[] = [];
    simulated.onFindListeningUser = async (_, user) => {
      asked.push(user);
      return null;
    };
    await setOptions(simulated.tools, undefined, { ...move, service: { ...service, url } });
    expect(asked).toEqual([expected]);
  });

  it('forgets a refused map, and the map that was held back', async () => {
    const simulated = await down({ refused: '"9"' });
    await simulated.tools.store.amendNotes('cpn0', { held: { since: 7 } });
    await setOptions(simulated.tools, undefined, move);
    expect((await simulated.state()).refused).toBeNull();
    expect((await simulated.tools.store.readNotes('cpn0')).held).toBeNull();
  });

  it('resolves the name of the new proxy', async () => {
    const simulated = await down();
    simulated.dnsRecords = { 'other.example.net': [parseAddress('198.51.100.9')] };
    await setOptions(simulated.tools, undefined, { ...move, proxy: parseProxy('http://other.example.net:3128', 'x') });
    expect((await simulated.state()).resolved).toEqual({ 'other.example.net': ['198.51.100.9'] });
  });

  it('uses the description at the new address from the first request on', async () => {
    const simulated = await down({ features: ['map-wait'] });
    const used: unknown[] = [];
    simulated.service.onDescribe = async () => ({ features: ['peer-key'], etag: null });
    simulated.service.mapReplies = [
      () => {
        used.push(simulated.service.knownService?.features);
        return { map: moved, waited: false };
      },
    ];
    await setOptions(simulated.tools, undefined, move);
    expect([used, (await simulated.state()).features]).toEqual([[['peer-key']], ['peer-key']]);
  });

  it('lists a listening user only for the same address', () => {
    const at = (url: string, listener: number) => joinedTo(map, { service: { ...service, url, listener } });
    const rows = (from: Joined, to: Joined) => describeMove(from, to).map(({ after }) => after);
    expect(rows(at(before, 7), at(before, 8))).toEqual([{ 'listening user': 8 }]);
    expect(rows(at(before, 7), at(service.url, 8))).toEqual([service.url]);
  });

  it('holds back a map that lacks most peers until it comes twice', () => {
    const peers = [2, 3, 4, 5].map((number) => peer(number, { endpoint: dialled(number) }));
    const state = joinedTo(mapAt('"1"', peers), { refused: '"9"' });
    const found = (count: number) => ({ service, features: null, map: mapAt('"2"', peers.slice(0, count)) });
    expect([1, 2, 3].map((count) => withMove(state, found(count)).membership.map.peers.length)).toEqual([5, 3, 4]);
    // A revision that the former address sent means nothing at the new one.
    const { refused, membership } = withMove(state, found(1));
    expect([refused, membership.map.revision]).toEqual([null, null]);
  });
});
