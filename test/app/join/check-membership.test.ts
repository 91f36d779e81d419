import { describe, expect, it } from 'vitest';
import { checkMembership, findJoined, isRemoved } from '../../../src/app/join/check-membership.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { BadReply, Refused, Unreachable } from '../../../src/core/errors/index.ts';
import type { SyncRefusal } from '../../../src/core/map/sync-refusal.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { keyPair, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith, fail, type MapReply } from '../simulated-service.ts';

const map = mapAt('"1"', [peer(2)]);
const without = { ...mapAt('"2"', [peer(2)]), peers: [peer(2)] };
const replaced = { ...mapAt('"2"', []), peers: [peer(1, { publicKey: keyPair(9).publicKey }), peer(2)] };
const unchanged: MapReply = () => ({ map: null, waited: false });
const refuse = (status: number, facts = {}) => fail(new Refused(status, 'it', 'no', 'x', facts));
const deleted = refuse(410, { deleted: { id: 7, nonce: 'x' } });
const gone = fail(new Unreachable('https://x', 'no', { delivered: false, heard: false, retryAfterMs: null }));

const own = joinedTo(map);
const personal: Joined = {
  ...own,
  membership: { ...own.membership, accessToken: null, personalToken: new Secret('cpt_x') },
};
const none: Joined = { ...own, membership: { ...own.membership, accessToken: null } };

/** The reply of the service, and what it proves of a host with its own token and of one with a person's. */
const cases: readonly [string, MapReply, boolean, boolean][] = [
  ['lists the host', answerWith({ ...map, revision: '"2"' }), false, false],
  ['does not list the host', answerWith(without), true, true],
  ['lists another host under its id', answerWith(replaced), true, true],
  ['has no newer map', unchanged, false, false],
  ['replies 401', refuse(401), true, false],
  ['replies 404', refuse(404), true, false],
  ['states that the network was deleted', deleted, true, false],
  ['replies 403', refuse(403), false, false],
  ['replies 410 of something else', refuse(410), false, false],
  ['replies 429', refuse(429), false, false],
  ['replies nonsense', fail(new BadReply('https://x', 'is no JSON', 'x')), false, false],
  ['is unreachable', gone, false, false],
];

async function hostOf(state: Joined, reply: MapReply) {
  const simulated = await SimulatedHost.with(state);
  simulated.service.mapReplies = [reply];
  const warnings: string[] = [];
  simulated.tools.warn = (text) => void warnings.push(text);
  return { simulated, tools: simulated.tools, warnings };
}

describe('a host was removed, or not, where its control plane', () => {
  it.each(cases)('%s', async (_, reply, isOwn, isPersonal) => {
    expect(await isRemoved((await hostOf(own, reply)).tools, own)).toBe(isOwn);
    expect(await isRemoved((await hostOf(personal, reply)).tools, personal)).toBe(isPersonal);
  });

  it('would get no token, so it is not asked', async () => {
    const { simulated, tools } = await hostOf(none, answerWith(without));
    expect([await isRemoved(tools, none), simulated.service.mapRequests]).toEqual([false, []]);
  });

  it('has another fault, which is thrown', async () => {
    const error = new TypeError('a mistake');
    await expect(isRemoved((await hostOf(own, fail(error))).tools, own)).rejects.toBe(error);
    await expect(checkMembership((await hostOf(own, fail(error))).tools, own)).rejects.toBe(error);
  });
});

describe('a join again where the control plane', () => {
  const outcomeOf = async (state: Joined, reply: MapReply) => {
    const { tools, warnings } = await hostOf(state, reply);
    const error = await checkMembership(tools, state).then(
      () => null,
      (thrown: Error) => thrown,
    );
    return error?.message.includes('no longer in network') ? 'left' : error !== null ? 'fails' : warnings.length;
  };

  it.each<[string, MapReply, unknown, unknown]>([
    ['answers', answerWith(map), 0, 0],
    ['replies 401', refuse(401), 'left', 'fails'],
    ['replies 404', refuse(404), 'left', 'fails'],
    ['states that the network was deleted', deleted, 'left', 'fails'],
    ['replies 403, as to a host that is suspended', refuse(403), 'fails', 'fails'],
    ['replies 429', refuse(429), 1, 1],
    ['is unreachable', gone, 1, 1],
  ])('%s', async (_, reply, ofOwn, ofPersonal) => {
    expect([await outcomeOf(own, reply), await outcomeOf(personal, reply)]).toEqual([ofOwn, ofPersonal]);
  });

  it('would get no token goes on without a request', async () => {
    expect(await outcomeOf(none, refuse(401))).toBe(0);
  });
});

describe('a network counts as joined', () => {
  const { service } = own;
  it.each<[SyncRefusal | null, boolean]>([
    [null, true],
    ['forbidden', true],
    ['token', false],
    ['gone', false],
  ])('where its control plane last refused it as %s: %s', async (refused, isJoined) => {
    const { tools } = await hostOf(own, unchanged);
    const { sync } = await tools.store.readNotes('cpn0');
    await tools.store.amendNotes('cpn0', { sync: { ...sync, refused } });
    expect((await findJoined(tools, service, null)) !== null).toBe(isJoined);
  });

  it('at its own control plane, and on its own interface', async () => {
    const { tools } = await hostOf(own, unchanged);
    const find = async (url: string, link: string | null) =>
      (await findJoined(tools, { ...service, url }, link)) !== null;
    expect([await find(service.url, 'cpn0'), await find(service.url, 'cpn1')]).toEqual([true, false]);
    expect(await find('https://203.0.113.98', null)).toBe(false);
    await tools.store.write({ ...own, interface: 'cpn1', membership: null });
    expect(await find(service.url, 'cpn1')).toBe(false);
  });
});
