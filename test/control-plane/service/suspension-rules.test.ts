import { expect, test } from 'vitest';
import type { ChangePeer } from '../../../src/contract/peer.ts';
import { readFields } from '../../../src/control-plane/domain/field-rules.ts';
import { InvalidRequest } from '../../../src/control-plane/errors.ts';
import {
  changeAction,
  isUnlisted,
  readSuspension,
  refuseUnlisted,
} from '../../../src/control-plane/service/suspension.ts';
import type { StoredPeer } from '../../../src/control-plane/store/peers/peers.ts';

const now = new Date('2030-01-01T00:00:00.000Z');
const [past, present, future] = [-1, 0, 1].map((ms) => new Date(now.getTime() + ms).toISOString()) as [
  string,
  string,
  string,
];
type Listing = Pick<StoredPeer, 'suspended_at' | 'expires_at' | 'expired' | 'reauth_hours'>;
const listed: Listing = { suspended_at: null, expires_at: null, expired: 0, reauth_hours: 0 };
/** A peer that needs no approval. */
const admitted = { awaiting_approval: null };
const suspended = { ...listed, suspended_at: past };
const ending = { ...listed, expires_at: future };
/** Its time is over; the network may not have noticed yet. */
const over = { ...listed, expires_at: present };
const expired = { ...over, expired: 1 };

test.each<[string, Listing, boolean, RegExp | null]>([
  ['a listed peer', listed, false, null],
  ['one that expires later', ending, false, null],
  ['one that expires now', over, false, /expired on/],
  ['an expired one', expired, true, /expired on/],
  ['a suspended one', suspended, true, /is suspended/],
  ['one that is both', { ...expired, suspended_at: past }, true, /is suspended/],
])('%s is in the map and may call, or not', (_what, peer, unlisted, refusal) => {
  expect(isUnlisted(peer)).toBe(unlisted);
  const check = () => refuseUnlisted({ ...peer, ...admitted }, now);
  if (refusal === null) expect(check).not.toThrow();
  else expect(check).toThrow(refusal);
});

test.each<[string, Listing, ChangePeer, Listing | string]>([
  ['nothing of it', suspended, {}, suspended],
  ['nothing of it', expired, { name: 'n' }, expired],
  ['a suspension', listed, { suspended: true }, { ...listed, suspended_at: present }],
  ['a suspension again, which keeps its instant', suspended, { suspended: true }, suspended],
  ['a resumption', suspended, { suspended: false }, listed],
  ['a resumption of a listed peer', listed, { suspended: false }, listed],
  ['a resumption before the end', { ...ending, suspended_at: past }, { suspended: false }, ending],
  ['a resumption after the end', { ...expired, suspended_at: past }, { suspended: false }, 'suspended'],
  ['a resumption of an expired peer', expired, { suspended: false }, 'suspended'],
  ['a resumption at the end', over, { suspended: false }, 'suspended'],
  ['a later end with the resumption', expired, { suspended: false, expires_at: future }, ending],
  ['no end with the resumption', { ...expired, suspended_at: past }, { suspended: false, expires_at: null }, listed],
  ['an end', listed, { expires_at: future }, ending],
  [
    'an end in another time zone',
    listed,
    { expires_at: '2030-01-01T02:00:00+01:00' },
    { ...listed, expires_at: '2030-01-01T01:00:00.000Z' },
  ],
  ['a later end', expired, { expires_at: future }, ending],
  ['no end', expired, { expires_at: null }, listed],
  ['an end that logins do not move', { ...ending, reauth_hours: 24 }, { expires_at: future }, ending],
  [
    'a suspension until a login',
    { ...ending, reauth_hours: 24 },
    { suspended: true },
    { ...ending, reauth_hours: 24, suspended_at: present },
  ],
  ['an end while it is suspended', suspended, { expires_at: future }, { ...ending, suspended_at: past }],
  ['an end now', listed, { expires_at: present }, 'expires_at'],
  ['an end in the past', ending, { expires_at: past }, 'expires_at'],
])('a change with %s', (_what, before, asked, after) => {
  const read = () => readFields((parse) => readSuspension(parse, asked, { ...before, ...admitted }, now));
  if (typeof after !== 'string') return expect(read()).toEqual(after);
  expect(read).toThrow(InvalidRequest);
  expect(read).toThrow(after);
});

test('a peer that waits for approval is in no map, may call, and is not resumed', () => {
  const waiting = { ...suspended, awaiting_approval: past };
  expect(isUnlisted(waiting)).toBe(true);
  expect(() => refuseUnlisted(waiting, now)).not.toThrow();
  expect(() => refuseUnlisted({ ...waiting, expires_at: present }, now)).toThrow(/expired on/);
  const resume = () => readFields((parse) => readSuspension(parse, { suspended: false }, waiting, now));
  expect(resume).toThrow('suspended');
  // A version without approval may have resumed it.
  expect(isUnlisted({ ...waiting, suspended_at: null })).toBe(false);
});

test.each<[Listing, Listing, string]>([
  [listed, suspended, 'peer.suspend'],
  [expired, { ...expired, suspended_at: past }, 'peer.suspend'],
  [suspended, listed, 'peer.resume'],
  [expired, ending, 'peer.resume'],
  [{ ...expired, suspended_at: past }, listed, 'peer.resume'],
  [{ ...expired, suspended_at: past }, expired, 'peer.update'],
  [{ ...expired, suspended_at: past }, { ...ending, suspended_at: past }, 'peer.update'],
  [listed, ending, 'peer.update'],
  [suspended, suspended, 'peer.update'],
])('in the audit, a change from %j to %j is a %s', (before, after, action) => {
  expect(changeAction(before as StoredPeer, after as StoredPeer)).toBe(action);
});
