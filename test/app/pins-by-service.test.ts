import { describe, expect, it } from 'vitest';
import { reconcileNetworks } from '../../src/app/networks/reconcile.ts';
import { withMembership } from '../../src/app/pins.ts';
import { passNetwork } from '../../src/app/reconcile/pass.ts';
import { noUpdate } from '../../src/app/reconcile/state-update.ts';
import { readStatus } from '../../src/app/status/status.ts';
import { makeIdentity, proveKey } from '../../src/core/crypto/identity.ts';
import { type Feature, features } from '../../src/core/map/features.ts';
import type { Peer } from '../../src/core/map/model.ts';
import type { PinRule } from '../../src/core/map/options.ts';
import type { Joined } from '../../src/store/state/state.ts';
import { address, dialled, keyPair, options, peer } from '../core/samples.ts';
import { joinedTo, mapAt } from './joined-state.ts';
import { SimulatedHost } from './simulated-host.ts';
import { answerWith } from './simulated-service.ts';

/** What a service sends with its maps: this one, and those that have less. */
const services: Readonly<Record<string, { stamp(number: number): object; features: readonly Feature[] | null }>> = {
  'has revisions and a nonce': { stamp: (number) => ({ revision: `"${number}-n"`, nonce: 'n' }), features },
  'has revisions': { stamp: (number) => ({ revision: `"${number}"` }), features },
  'has weak revisions': { stamp: (number) => ({ revision: `W/"${number}"` }), features },
  'has revisions and no extension': { stamp: (number) => ({ revision: `"${number}"` }), features: [] },
  'has no revisions': { stamp: () => ({ revision: null }), features },
  'has neither revisions nor extensions': { stamp: () => ({ revision: null }), features: [] },
  'has no revisions, and was never described': { stamp: () => ({ revision: null }), features: null },
};

const identity = makeIdentity(new Uint8Array(32).fill(7));
const key = (number: number) => keyPair(number).publicKey;
const db = peer(2, { name: 'db', endpoint: dialled(2), identity: identity.key });
const web = peer(3, { endpoint: dialled(3) });
const stranger: Peer = { ...db, publicKey: key(22) };

/** Peers that a service lists one after the other, and the keys and addresses that the tunnel has at the end. */
interface Story {
  readonly lists: readonly (readonly Peer[])[];
  readonly strict: Readonly<Record<string, string>>;
  readonly report: Readonly<Record<string, string>>;
  /** Ids of the peers with a mismatch at the end, by rule where it makes a difference. */
  readonly mismatches: readonly number[] | Readonly<Record<PinRule, readonly number[]>>;
}

const [two, three] = ['10.77.0.2/32', '10.77.0.3/32'];
const known = { [key(2)]: two, [key(3)]: three };
const moved = { ...db, address: address('10.77.0.9') };

const stories: Readonly<Record<string, Story>> = {
  'a key without a proof': {
    lists: [[stranger, web]],
    strict: known,
    report: { [key(22)]: two, [key(3)]: three },
    mismatches: [2],
  },
  'a key without a proof, while others change': {
    lists: [
      [stranger, web],
      [stranger, { ...web, name: 'w' }, peer(4, { endpoint: dialled(4) })],
    ],
    strict: { ...known, [key(4)]: '10.77.0.4/32' },
    report: { [key(22)]: two, [key(3)]: three, [key(4)]: '10.77.0.4/32' },
    mismatches: [2],
  },
  'one key after another without a proof': {
    lists: [
      [stranger, web],
      [{ ...stranger, publicKey: key(33) }, web],
    ],
    strict: known,
    report: { [key(33)]: two, [key(3)]: three },
    mismatches: [2],
  },
  'a key without a proof, and the old one again': {
    lists: [
      [stranger, web],
      [db, web],
    ],
    strict: known,
    report: known,
    mismatches: [],
  },
  'a key with a proof': {
    lists: [[{ ...stranger, proof: proveKey(identity, key(22), new Date(9)) }, web]],
    strict: { [key(22)]: two, [key(3)]: three },
    report: { [key(22)]: two, [key(3)]: three },
    mismatches: [],
  },
  'another address': {
    lists: [[moved, web]],
    strict: known,
    report: { [key(2)]: '10.77.0.9/32', [key(3)]: three },
    mismatches: [2],
  },
  // An address that is given back may go to another peer.
  'a new peer at the address of one that is gone': {
    lists: [[peer(9, { endpoint: dialled(9), address: db.address }), web]],
    strict: known,
    report: { [key(9)]: two, [key(3)]: three },
    mismatches: { strict: [9], report: [] },
  },
  'a peer that is new': {
    lists: [[db, web, peer(4, { endpoint: dialled(4) })]],
    strict: { ...known, [key(4)]: '10.77.0.4/32' },
    report: { ...known, [key(4)]: '10.77.0.4/32' },
    mismatches: [],
  },
};

describe.each(Object.entries(services))('a service that %s', (_, service) => {
  const mapOf = (number: number, peers: readonly Peer[]) =>
    mapAt(null, peers, { routes: [], ...service.stamp(number) });

  async function start(pin: PinRule): Promise<SimulatedHost> {
    const changes = { options: { ...options, pin }, features: service.features };
    const { membership, ...state } = joinedTo(mapOf(1, [db, web]), changes);
    const simulated = await SimulatedHost.with(withMembership(state as Joined, membership));
    simulated.onHandshakeTrigger = () => {};
    await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
    return simulated;
  }

  const tunnelOf = (simulated: SimulatedHost) =>
    Object.fromEntries(simulated.actual.device?.peers.map((each) => [each.publicKey, each.allowedIps.join()]) ?? []);

  const rows = Object.entries(stories).flatMap(([name, story]) =>
    (['strict', 'report'] as const).map((rule) => [name, rule, story] as const),
  );
  it.each(rows)('%s, with %s', async (name, rule, story) => {
    const simulated = await start(rule);
    const reconcile = (number: number, peers: readonly Peer[]) => {
      simulated.service.mapReplies = [answerWith(mapOf(number, peers))];
      return reconcileNetworks(simulated.tools);
    };
    for (const [at, peers] of story.lists.entries()) {
      await reconcile(at + 2, peers);
      if (rule === 'strict' && !name.includes('with a proof')) expect(tunnelOf(simulated)).toMatchObject(known);
    }
    expect(tunnelOf(simulated)).toEqual(story[rule]);
    // The same reply, and none, change nothing.
    simulated.steps.length = 0;
    await reconcile(story.lists.length + 1, story.lists.at(-1) ?? []);
    const pass = await passNetwork(simulated.tools, 'cpn0', noUpdate, { withinMs: 20_000 });
    expect([simulated.steps, pass?.changes]).toEqual([[], []]);
    const [status] = await readStatus(simulated.tools);
    const mismatched = status?.peers.filter(({ pin }) => pin !== 'ok').map(({ id, pin }) => [id, pin]);
    const wanted = 'strict' in story.mismatches ? story.mismatches[rule] : story.mismatches;
    expect(mismatched).toEqual(wanted.map((id) => [id, rule === 'strict' ? 'held' : 'changed']));
  });
});
