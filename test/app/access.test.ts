import { describe, expect, it } from 'vitest';
import { accessOf, findNoAccess } from '../../src/app/access.ts';
import { planNetworks, reconcileNetworks } from '../../src/app/networks/reconcile.ts';
import { removeFromService } from '../../src/app/networks/remove-peer.ts';
import { refresh } from '../../src/app/reconcile/refresh.ts';
import { readStatus } from '../../src/app/status/status.ts';
import { Secret } from '../../src/core/crypto/secret.ts';
import { Refused } from '../../src/core/errors/index.ts';
import { toSentence } from '../../src/core/problems/problem.ts';
import type { Joined, Membership } from '../../src/store/state/state.ts';
import { dialled, peer } from '../core/samples.ts';
import { joinedTo, mapAt, self } from './joined-state.ts';
import { SimulatedHost } from './simulated-host.ts';
import { answerWith, fail, type SimulatedService } from './simulated-service.ts';

const other = peer(2, { endpoint: dialled(2) });
const map = mapAt(null, [other], { routes: [] });
const personalToken = new Secret('cpt_person');

/** A host whose service gave it no token of its own. */
function tokenless(changes: Partial<Membership> = {}): Joined {
  const state = joinedTo(map);
  return { ...state, membership: { ...state.membership, accessToken: null, ...changes } };
}

const refused = (status: number) => fail(new Refused(status, 'this', 'no', 'ask an operator'));

describe('the token of a request to the control plane', () => {
  it('is that of the host, else a personal one; there is no request without a token or a network id', () => {
    expect(accessOf(joinedTo(map))?.token.reveal()).toBe('cpp_x');
    const both = joinedTo(map);
    expect(accessOf({ ...both, membership: { ...both.membership, personalToken } })?.token.reveal()).toBe('cpp_x');
    expect(accessOf(tokenless({ personalToken }))).toEqual({ network: 7, token: personalToken });
    expect(accessOf(tokenless())).toBeNull();
    expect(accessOf(tokenless({ personalToken, map: { ...map, id: null } }))).toBeNull();
  });

  it('may be a personal one when the host reads its newest map', async () => {
    const state = tokenless({ personalToken });
    const simulated = await SimulatedHost.with(state);
    simulated.service.mapReplies = [answerWith(mapAt(null, [other, peer(3)]))];
    const { update, failure } = await refresh(simulated.tools, state);
    expect(failure).toBeNull();
    expect(update.map?.peers).toHaveLength(3);
  });
});

describe('a host without a token', () => {
  it('is reconciled with its last map, and warns', async () => {
    const simulated = await SimulatedHost.with(tokenless());
    const warnings: string[] = [];
    const tools = { ...simulated.tools, warn: (text: string) => void warnings.push(text) };
    const [report] = await reconcileNetworks(tools);
    expect(report).toMatchObject({ failure: null, unsynced: null });
    expect(report?.changes.length).toBeGreaterThan(0);
    expect(simulated.service.mapRequests).toEqual([]);
    expect(warnings).toEqual([findNoAccess(tokenless())].flatMap((found) => (found ? toSentence(found) : [])));
    expect(warnings[0]).toContain('--token-file');
    const [status] = await readStatus(tools);
    expect(status).toMatchObject({ state: 'up', sync: { mode: 'local' }, warnings });
    expect((await planNetworks(tools))[0]?.changes).toEqual([]);
  });

  it('gives the reason when the control plane sent no network id', () => {
    const local = findNoAccess(tokenless({ personalToken, map: { ...map, id: null } }));
    expect(local?.text).toContain('sent no id');
  });
});

describe('leaving', () => {
  /** Whether the control plane removed this host, and the warnings. */
  async function leave(state: Joined, changes: Partial<Pick<SimulatedService, 'onRemovePeer' | 'mapReplies'>>) {
    const simulated = await SimulatedHost.with(state);
    Object.assign(simulated.service, changes);
    const warnings: string[] = [];
    const removed = await removeFromService({ ...simulated.tools, warn: (text) => void warnings.push(text) }, state);
    return { removed, warned: warnings.join('\n') };
  }
  const lent = tokenless({ personalToken });

  it('uses the personal token', async () => {
    const tokens: string[] = [];
    const removes = (token: Secret) => tokens.push(token.reveal()) > 0;
    expect(await leave(lent, { onRemovePeer: removes })).toEqual({ removed: true, warned: '' });
    expect(tokens).toEqual(['cpt_person']);
  });

  it('names the peer that stays when the control plane does not support removal', async () => {
    const { removed, warned } = await leave(lent, { onRemovePeer: () => false, mapReplies: [answerWith(map)] });
    expect(removed).toBe(false);
    expect(warned).toContain('may not support the removal of peers; peer 1 stays in network office');
  });

  it('fails as well when the control plane never listed this host', async () => {
    const unlisted = tokenless({ personalToken, map: mapAt(null, []) });
    const implied = { ...unlisted.membership.map, peers: [{ ...self, unlisted: true as const }, other] };
    const state = { ...unlisted, membership: { ...unlisted.membership, map: implied } };
    const answers = [answerWith({ ...map, peers: [other] })];
    expect(await leave(state, { onRemovePeer: () => false, mapReplies: answers })).toMatchObject({ removed: false });
  });

  it('succeeds when the network no longer lists this host, or is gone', async () => {
    const gone = { ...map, peers: [other] };
    expect(await leave(lent, { onRemovePeer: () => false, mapReplies: [answerWith(gone)] })).toEqual({
      removed: true,
      warned: '',
    });
    expect(await leave(lent, { onRemovePeer: () => false, mapReplies: [refused(404)] })).toEqual({
      removed: true,
      warned: '',
    });
  });

  it('treats a void token as removal only if it is the token of the host', async () => {
    const removes = () => {
      throw new Refused(401, 'this', 'no', 'sign in');
    };
    expect(await leave(joinedTo(map), { onRemovePeer: removes })).toEqual({ removed: true, warned: '' });
    expect(await leave(lent, { onRemovePeer: removes })).toMatchObject({ removed: false });
  });

  it('names the peer that stays when there is no token', async () => {
    const { removed, warned } = await leave(tokenless(), {});
    expect(removed).toBe(false);
    expect(warned).toContain('gave this host no token to remove itself with; peer 1 stays');
  });
});
