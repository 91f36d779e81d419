import { describe, expect, it } from 'vitest';
import { accessOf, explainLocal } from '../../src/app/access.ts';
import { removeFromService } from '../../src/app/leave.ts';
import { planNetworks, reconcileNetworks } from '../../src/app/reconcile.ts';
import { refresh } from '../../src/app/refresh.ts';
import { readStatus } from '../../src/app/status.ts';
import { Refused } from '../../src/core/errors.ts';
import { Secret } from '../../src/core/secret.ts';
import type { Joined, Membership } from '../../src/store/state.ts';
import { dialled, peer } from '../core/samples.ts';
import { answerWith, Desk, fail, joinedTo, mapAt, self } from './desk.ts';

const other = peer(2, { endpoint: dialled(2) });
const map = mapAt(null, [other], { routes: [] });
const personalToken = new Secret('cpt_person');

/** A host whose service gave it no token of its own. */
function tokenless(changes: Partial<Membership> = {}): Joined {
  const state = joinedTo(map);
  return { ...state, membership: { ...state.membership, accessToken: null, ...changes } };
}

const refused = (status: number) => fail(new Refused(status, 'this', 'no', 'ask somebody'));

describe('a host asks its control plane', () => {
  it('with its own token, else with a personal one, and not at all without either or without an id', () => {
    expect(accessOf(joinedTo(map))?.token.reveal()).toBe('cpp_x');
    const both = joinedTo(map);
    expect(accessOf({ ...both, membership: { ...both.membership, personalToken } })?.token.reveal()).toBe('cpp_x');
    expect(accessOf(tokenless({ personalToken }))).toEqual({ network: 7, token: personalToken });
    expect(accessOf(tokenless())).toBeNull();
    expect(accessOf(tokenless({ personalToken, map: { ...map, id: null } }))).toBeNull();
  });

  it('for its newest map with a personal token', async () => {
    const state = tokenless({ personalToken });
    const desk = await Desk.with(state);
    desk.answers = [answerWith(mapAt(null, [other, peer(3)]))];
    const { news, failure } = await refresh(desk.tools, state);
    expect(failure).toBeNull();
    expect(news.map?.peers).toHaveLength(3);
  });
});

describe('a host that has nothing to ask with', () => {
  it('is kept right from what it last knew, and says so', async () => {
    const desk = await Desk.with(tokenless());
    const told: string[] = [];
    const tools = { ...desk.tools, warn: (text: string) => void told.push(text) };
    const [report] = await reconcileNetworks(tools);
    expect(report).toMatchObject({ failure: null, unsynced: null });
    expect(report?.changes.length).toBeGreaterThan(0);
    expect(desk.asked).toEqual([]);
    expect(told).toEqual([explainLocal(tokenless())]);
    expect(told[0]).toContain('--token-file');
    const [status] = await readStatus(tools);
    expect(status).toMatchObject({ state: 'up', sync: { mode: 'local' }, warnings: told });
    expect((await planNetworks(tools))[0]?.changes).toEqual([]);
  });

  it('names the reason where the service never said which network it is in', () => {
    const local = explainLocal(tokenless({ personalToken, map: { ...map, id: null } }));
    expect(local).toContain('did not say which network');
  });
});

describe('leaving', () => {
  /** Whether this host was taken out of its network, and what was said. */
  async function leave(state: Joined, changes: Partial<Pick<Desk, 'removes' | 'answers'>>) {
    const desk = await Desk.with(state);
    Object.assign(desk, changes);
    const told: string[] = [];
    const removed = await removeFromService({ ...desk.tools, warn: (text) => void told.push(text) }, state);
    return { removed, told: told.join('\n') };
  }
  const lent = tokenless({ personalToken });

  it('asks with the personal token', async () => {
    const tokens: string[] = [];
    const removes = (token: Secret) => tokens.push(token.reveal()) > 0;
    expect(await leave(lent, { removes })).toEqual({ removed: true, told: '' });
    expect(tokens).toEqual(['cpt_person']);
  });

  it('says who stays where the service knows of no way to remove a peer', async () => {
    const { removed, told } = await leave(lent, { removes: () => false, answers: [answerWith(map)] });
    expect(removed).toBe(false);
    expect(told).toContain('does not know how to remove peers; peer 1 stays in network office');
  });

  it('says so too where the service never listed this host', async () => {
    const unlisted = tokenless({ personalToken, map: mapAt(null, []) });
    const implied = { ...unlisted.membership.map, peers: [{ ...self, unlisted: true as const }, other] };
    const state = { ...unlisted, membership: { ...unlisted.membership, map: implied } };
    expect(await leave(state, { removes: () => false })).toMatchObject({ removed: false });
  });

  it('is done where the network does not list this host any more, or is gone', async () => {
    const gone = { ...map, peers: [other] };
    expect(await leave(lent, { removes: () => false, answers: [answerWith(gone)] })).toEqual({
      removed: true,
      told: '',
    });
    expect(await leave(lent, { removes: () => false, answers: [refused(404)] })).toEqual({ removed: true, told: '' });
  });

  it('takes a token that is void for a sign that it was done only if it was the host’s own', async () => {
    const removes = () => {
      throw new Refused(401, 'this', 'no', 'sign in');
    };
    expect(await leave(joinedTo(map), { removes })).toEqual({ removed: true, told: '' });
    expect(await leave(lent, { removes })).toMatchObject({ removed: false });
  });

  it('says who stays where there is nothing to ask with', async () => {
    const { removed, told } = await leave(tokenless(), {});
    expect(removed).toBe(false);
    expect(told).toContain('gave this host no token to remove itself with; peer 1 stays');
  });
});
