import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { judgeRoutes } from '../../../../src/app/lan/serving.ts';
import type { Evaluation } from '../../../../src/app/reconcile/evaluate-network.ts';
import type { Pass } from '../../../../src/app/reconcile/pass.ts';
import { OwnConnector } from '../../../../src/app/run/health/own-connector.ts';
import { type Liveness, recordAnswer, recordTime, unknownLiveness } from '../../../../src/core/health/liveness.ts';
import type { NetworkMap, Peer, PeerFailure } from '../../../../src/core/map/model.ts';
import { rankConnectors } from '../../../../src/core/routing/topology/topology.ts';
import type { Joined } from '../../../../src/store/state/state.ts';
import { dialled, network, peer, prefix } from '../../../core/samples.ts';
import { joinedTo } from '../../joined-state.ts';

const lan = prefix('192.168.50.0/24');
const round = 0.5;

/** Liveness of connectors as one host probes them, twice a second. */
class View {
  readonly known = new Map<number, Liveness>();

  constructor(ids: readonly number[]) {
    for (const id of ids) this.known.set(id, recordAnswer(unknownLiveness('trusted'), 'answer'));
  }

  get failed(): PeerFailure[] {
    return [...this.known].flatMap(([id, { state }]) =>
      state === 'trusted' ? [] : [{ peer: id, back: state === 'back' }],
    );
  }

  /** Returns the connectors that became silent. */
  probe(answers: (id: number) => boolean, inService: (id: number) => boolean): number[] {
    const silent: number[] = [];
    for (const [id, before] of this.known) {
      const heard = answers(id) ? recordAnswer(before, 'answer') : before;
      const observation = { inService: inService(id), hasOther: true, isNamedRelay: false, isOnlyRelay: false };
      const after = recordTime(heard, { seconds: round, every: round, ...observation });
      if (after.state === 'silent' && before.state !== 'silent') silent.push(id);
      this.known.set(id, after);
    }
    return silent;
  }

  restore(id: number): void {
    const before = this.known.get(id) as Liveness;
    if (before.state === 'silent') this.known.set(id, { ...before, state: 'trusted', silence: 0, answers: true });
  }
}

/** Connectors in front of one LAN, and a host that uses them; each probes all others. */
class Site {
  readonly map: NetworkMap;
  readonly cutOff = new Set<number>();
  readonly #connectors: readonly { readonly id: number; readonly own: OwnConnector; readonly view: View }[];
  readonly #user: View;
  readonly #joined: Joined;

  constructor(count: number) {
    const ids = Array.from({ length: count }, (_, index) => index + 1);
    const connectors = ids.map((id) => peer(id, { type: 'connector', endpoint: dialled(id) }));
    this.map = network([...connectors, peer(9)], { routes: [lan] });
    this.#joined = joinedTo(this.map);
    this.#user = new View(ids);
    this.#connectors = ids.map((id) => ({
      id,
      own: new OwnConnector(),
      view: new View(ids.filter((each) => each !== id)),
    }));
    for (const { id, own } of this.#connectors) own.follow(this.#pass(id, []));
  }

  /** The connectors in service, as each judges itself. */
  get serving(): number[] {
    return this.#connectors
      .filter(({ id, own, view }) => this.#serves(id, [...view.failed, ...own.failed]))
      .map(({ id }) => id);
  }

  /** The connector that the host uses. */
  get used(): number | undefined {
    const { compare } = rankConnectors(this.#user.failed);
    return this.map.peers.filter(({ type }) => type === 'connector').toSorted(compare)[0]?.id as number;
  }

  boot(id: number): void {
    const { own } = this.#connectors.find((each) => each.id === id) as { own: OwnConnector };
    own.follow({ evaluation: null, changes: [], isDrift: true });
    own.follow(this.#pass(id, []));
  }

  run(seconds: number, check: () => void = () => {}): void {
    for (let at = 0; at < seconds; at += round) {
      const { used, serving } = this;
      this.#user.probe(
        (id) => !this.cutOff.has(id),
        (id) => id === used,
      );
      for (const { id, own, view } of this.#connectors) {
        const isConnected = !this.cutOff.has(id);
        if (isConnected) for (const each of own.hear()) view.restore(Number(each));
        own.recordTime(round, 0);
        const silent = view.probe(
          (other) => isConnected && !this.cutOff.has(other),
          (other) => serving.includes(other),
        );
        for (const each of silent) own.noteSilent(String(each) as never);
        own.follow(this.#pass(id, [...view.failed, ...own.failed]));
      }
      check();
    }
  }

  #serves(id: number, failed: readonly PeerFailure[]): boolean {
    return judgeRoutes(this.#evaluation(id, failed)).some(({ service }) => service.is === 'in service');
  }

  #pass(id: number, failed: readonly PeerFailure[]): Pass {
    return { evaluation: this.#evaluation(id, failed), changes: [], isDrift: true };
  }

  #evaluation(id: number, failed: readonly PeerFailure[]): Evaluation {
    const self = this.map.peers.find((each) => each.id === id) as Peer;
    const { membership, ...state } = this.#joined;
    const known: Joined = { ...state, membership: { ...membership, peer: self, map: this.map }, failed };
    return { state: { ...known, keyPair: { ...known.keyPair, publicKey: self.publicKey } }, expired: [] } as never;
  }
}

/** Each entry toggles the uplink of a connector, and then waits. */
const changes = (count: number) =>
  fc.array(fc.record({ id: fc.integer({ min: 1, max: count }), wait: fc.constantFrom(4, 12, 40, 150) }), {
    minLength: 1,
    maxLength: 6,
  });

describe('of several connectors', () => {
  it.each([2, 3])('two of %d are in service for at most a round, whatever the order of deaths and returns', (count) => {
    fc.assert(
      fc.property(changes(count), (steps) => {
        const site = new Site(count);
        site.run(5);
        expect(site.serving).toEqual([1]);
        for (const { id, wait } of steps) {
          if (!site.cutOff.delete(id)) site.cutOff.add(id);
          site.run(3);
          let over = 0;
          site.run(wait, () => {
            over = site.serving.length > 1 ? over + 1 : 0;
            expect([over, site.serving.length <= 2]).toEqual([Math.min(over, 1), true]);
          });
        }
        site.cutOff.clear();
        site.run(1100);
        expect(site.serving).toEqual([1]);
        expect(site.used).toBe(1);
      }),
      { numRuns: 15 },
    );
  });
});
