import { describe, expect, it } from 'vitest';
import type { OptionChanges } from '../../../src/app/networks/option-changes.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import { planOptions, setOptions } from '../../../src/app/options/set-options.ts';
import { type CpnError, Interrupted, Refused, Unreachable } from '../../../src/core/errors/index.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import { parseAddress } from '../../../src/core/net/cidr.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { dialled, keyPair, peer, prefix } from '../../core/samples.ts';
import { type Answer, answerWith, Desk, fail, joinedTo, mapAt } from '../desk.ts';

const before = 'https://203.0.113.99';
const service = { url: 'https://203.0.113.98', insecureHttp: false };
const move: OptionChanges = {
  ...{ options: {}, allowRoutes: [], refuseRoutes: [], addProbes: [], dropProbes: [] },
  service,
};
const map = mapAt('"1"', [peer(2, { endpoint: dialled(2) })]);
/** What the control plane has at its new address: a history that goes on otherwise. */
const moved = mapAt('"1-restored"', [peer(2, { endpoint: dialled(2) }), peer(3, { endpoint: dialled(3) })]);
const gone = new Unreachable(service.url, 'refused', { delivered: false, heard: true, retryAfterMs: null });

/** A host that is up, and whose former control plane does not answer any more. */
async function startDesk(there: readonly Answer[], changes: Partial<Joined> = {}): Promise<Desk> {
  const desk = await Desk.with(joinedTo(map, changes));
  desk.answers = [answerWith(map)];
  await reconcileNetworks(desk.tools);
  if (desk.actual.device) desk.touch(2, { latestHandshake: Math.floor(desk.tools.now().getTime() / 1000) });
  desk.steps.length = 0;
  desk.asked.length = 0;
  const answers = [...there];
  desk.answers = [
    (revision, wait) => {
      if (desk.known?.service.url !== service.url) throw gone;
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      if (answer === undefined) throw new Error('it is asked too often');
      return answer(revision, wait);
    },
  ];
  return desk;
}

const set = (desk: Desk) => setOptions(desk.tools, undefined, move).catch((error: CpnError) => error);

describe('a control plane that moved', () => {
  it('first gets a request for the whole map, then requests by its revision', async () => {
    const desk = await startDesk([answerWith(moved)], { features: [] });
    const report = await setOptions(desk.tools, undefined, move);
    expect(report.changes[0]).toMatchObject({ action: 'update', kind: 'api', before, after: service.url });
    expect(report.changes.map(({ kind }) => kind)).toContain('peer');
    const state = await desk.state();
    expect(state).toMatchObject({ service, membership: { map: { revision: moved.revision } } });
    expect(state.keyPair).toEqual(joinedTo(map).keyPair);
    expect(state.features).toContain('map-wait');
    expect(desk.asked.map(({ revision }) => revision)).toEqual([null, moved.revision, moved.revision]);
    expect(desk.actual.device?.peers).toHaveLength(2);
  });

  it('must report another range of the network twice', async () => {
    const wider = { ...moved, cidr: prefix('10.0.0.0/8') };
    const desk = await startDesk([answerWith(wider)]);
    await setOptions(desk.tools, undefined, move);
    const [report] = await reconcileNetworks(desk.tools);
    expect(report?.unsynced?.message).toContain('has the range 10.0.0.0/8, not 10.77.0.0/24');
    expect((await desk.state()).membership.map.cidr).toBe('10.77.0.0/24');
    expect(desk.actual.link?.addresses).toMatchObject([{ length: 24 }]);
  });

  it('gets only the request for the map in a dry run', async () => {
    const desk = await startDesk([answerWith(moved)]);
    const known = await desk.state();
    expect((await planOptions(desk.tools, undefined, move)).changes[0]).toMatchObject({ kind: 'api' });
    expect([desk.steps, await desk.state(), desk.asked.length]).toEqual([[], known, 1]);
  });

  it('is written down for a network that is down', async () => {
    const desk = await startDesk([answerWith(moved)], { enabled: false });
    await setOptions(desk.tools, undefined, move);
    expect([(await desk.state()).service, desk.steps]).toEqual([service, []]);
  });

  it('is followed, though most peers stay until it leaves them out twice', async () => {
    const alone = mapAt('"9"', []);
    const desk = await startDesk([answerWith(alone)]);
    await setOptions(desk.tools, undefined, move);
    expect(await desk.state()).toMatchObject({ service, membership: { map: { revision: null } } });
    expect(desk.actual.device?.peers).toHaveLength(1);
    expect((await desk.tools.store.readNotes('cpn0')).held).not.toBeNull();
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

const sent = `the token of this host was sent to ${service.url}: if you do not trust that one, to make it void, "cpn leave cpn0"`;

describe('nothing changes where the address', () => {
  it.each(others)('%s', async (_, answered, problem) => {
    const desk = await startDesk([answerWith(answered)]);
    const known = await desk.state();
    const failure = await set(desk);
    expect(failure).toMatchObject({ name: 'CannotMove', message: expect.stringMatching(problem) });
    expect(failure).toMatchObject({ message: expect.stringContaining(sent) });
    expect([desk.steps, await desk.state(), desk.asked.length]).toEqual([[], known, 1]);
  });

  it('refuses the token of this host', async () => {
    const desk = await startDesk([fail(new Refused(401, 'reading', 'no', 'join again'))]);
    const known = await desk.state();
    expect(await set(desk)).toMatchObject({
      name: 'Refused',
      message: expect.stringMatching(new RegExp(`does not know this host.*"cpn leave cpn0", and join there.*${sent}`)),
    });
    expect(await desk.state()).toEqual(known);
  });

  it('refuses this host with a reason', async () => {
    const suspended = new Refused(403, 'reading', 'this peer is suspended', null);
    const desk = await startDesk([fail(suspended)]);
    expect(await set(desk)).toBe(suspended);
  });

  it('does not respond', async () => {
    const desk = await startDesk([fail(gone)]);
    const known = await desk.state();
    expect(await set(desk)).toBe(gone);
    expect(await desk.state()).toEqual(known);
  });

  it('would get a request without a token', async () => {
    const membership = { ...joinedTo(map).membership, accessToken: null };
    const desk = await startDesk([answerWith(moved)], { membership });
    expect(await set(desk)).toMatchObject({
      name: 'CannotMove',
      message: expect.stringMatching(/has none(?!.*was sent)/),
    });
    expect(desk.asked).toEqual([]);
  });

  it('does not send the map again: a peer that answers does not confirm it', async () => {
    const desk = await startDesk([answerWith(moved), fail(gone)]);
    desk.alive.add(peer(2).address);
    const known = await desk.state();
    expect(await set(desk)).toMatchObject({ name: 'NotKept', message: expect.stringContaining(service.url) });
    expect({ ...(await desk.state()), receipt: [] }).toEqual({ ...known, receipt: [] });
    expect(desk.actual.device?.peers).toHaveLength(1);
  });

  it('is not confirmed before a signal', async () => {
    const desk = await startDesk([
      answerWith(moved),
      () => {
        desk.interrupting.abort(new Interrupted('SIGHUP'));
        throw gone;
      },
    ]);
    const known = await desk.state();
    expect(await set(desk)).toBeInstanceOf(Interrupted);
    expect({ ...(await desk.state()), receipt: [] }).toEqual({ ...known, receipt: [] });
    expect(desk.actual.device?.peers).toHaveLength(1);
  });
});
