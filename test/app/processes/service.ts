import type { EnrollmentRequest, PeerService } from '../../../src/api/service.ts';
import type { PublicKey } from '../../../src/core/crypto/keys.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { Refused } from '../../../src/core/errors/index.ts';
import type { Id, Peer } from '../../../src/core/map/model.ts';
import { dialled, network, peer, prefix } from '../../core/samples.ts';

/** The network of each enrolment key. */
const networkOf = new Map<string, Id>([
  ['key of office', 7],
  ['key of lab', 8],
]);
const ranges = new Map<Id, string>([
  [7, '10.77.0'],
  [8, '10.88.0'],
]);

/** What the control plane has of one network. */
interface Listed {
  readonly peers: readonly Peer[];
  readonly revision: number;
  /** The one that the last enrolment of the host got. */
  readonly token: string;
}

/** A control plane with two networks, which one host may join; it is peer 1 there. */
export class Service {
  readonly #networks = new Map<Id, Listed>();
  /** Whether it fails removals. */
  isAway = false;

  constructor() {
    for (const [id, range] of ranges) {
      this.#networks.set(id, { peers: [2, 3].map((number) => connector(range, number)), revision: 1, token: '' });
    }
  }

  /** A peer joins a network from elsewhere. */
  admit(id: Id, number: number): void {
    this.#change(id, ({ peers }) => ({ peers: [...peers, connector(ranges.get(id) ?? '', number)] }));
  }

  #change(id: Id, change: (listed: Listed) => Partial<Listed>): void {
    const listed = this.#networks.get(id) as Listed;
    this.#networks.set(id, { ...listed, ...change(listed), revision: listed.revision + 1 });
  }

  /** Becomes what another one is now. */
  copy(other: Service): void {
    for (const [id, listed] of other.#networks) this.#networks.set(id, listed);
  }

  /** A client of it. */
  connect(): PeerService {
    const mayUse = (id: Id, token: Secret) => {
      const listed = this.#networks.get(id) as Listed;
      if (listed.token !== token.reveal()) throw new Refused(401, 'this', 'void', 'x', { reasoned: true });
      return listed;
    };
    const changeSelf = (id: Id, change: Partial<Peer>) =>
      this.#change(id, ({ peers }) => ({
        peers: peers.map((each) => (each.id === 1 ? { ...each, ...change } : each)),
      }));
    return {
      enroll: async (request) => this.#enroll(request),
      readMap: async (id, token, known) => {
        const { peers, revision } = mayUse(id, token);
        const name = `"${revision}"`;
        const base = typeof known === 'string' ? known : (known?.revision ?? null);
        return { map: base === name ? null : this.#map(id, peers, name), waited: false };
      },
      withdraw: async (id, _, token, withdrawn) => {
        mayUse(id, token);
        changeSelf(id, { withdrawn });
      },
      announceMasquerading: async () => {},
      announceSecret: async () => true,
      changeKey: async (id, _, token, publicKey, proof) => {
        mayUse(id, token);
        changeSelf(id, { publicKey, ...(proof && { proof }) });
        return true;
      },
      describePeer: async (id, _, token, { name, endpoint }) => {
        mayUse(id, token);
        changeSelf(id, { ...(name !== undefined && { name }), ...(endpoint !== undefined && { endpoint }) });
      },
      removePeer: async (id, _, token) => {
        if (this.isAway) throw new Refused(503, 'the removal', 'away', 'x');
        mayUse(id, token);
        this.#change(id, ({ peers }) => ({ peers: peers.filter((each) => each.id !== 1), token: '' }));
        return true;
      },
      report: async () => null,
      sendPathSignals: async () => false,
    };
  }

  #enroll({ token, name, type, endpoint, publicKey, currentNetworks, idempotencyKey }: EnrollmentRequest) {
    const id = networkOf.get(token.reveal()) as Id;
    if (currentNetworks?.includes(id)) throw new Refused(409, 'the enrolment', 'this host is in it', 'x');
    const address = `${ranges.get(id)}.1` as Peer['address'];
    const self = peer(1, { name, type, endpoint, publicKey, address, routes: null });
    this.#change(id, ({ peers }) => ({
      peers: [self, ...peers.filter((each) => each.id !== 1)],
      token: `token ${idempotencyKey}`,
    }));
    const { peers, revision } = this.#networks.get(id) as Listed;
    const accessToken = new Secret(`token ${idempotencyKey}`);
    return { peer: self, map: this.#map(id, peers, `"${revision}"`), accessToken };
  }

  #map(id: Id, peers: readonly Peer[], revision: string) {
    const range = ranges.get(id);
    const routes = [prefix(`192.168.${id}.0/24`)];
    return network(peers, { id, name: id === 7 ? 'office' : 'lab', cidr: prefix(`${range}.0/24`), routes, revision });
  }

  /** The peers of a network. */
  peersOf(id: Id): readonly Peer[] {
    return this.#networks.get(id)?.peers ?? [];
  }

  /** The peers of the network in which a host has this key. */
  peersAround(key: PublicKey | null): readonly Peer[] {
    const all = [...this.#networks.values()].map(({ peers }) => peers);
    return all.find((peers) => peers.some(({ publicKey }) => publicKey === key)) ?? [];
  }

  /** All that the host may change of it. */
  summary() {
    return [...this.#networks].map(([id, { peers }]) => {
      return [id, peers.map(({ id: number, name, endpoint, withdrawn }) => ({ number, name, endpoint, withdrawn }))];
    });
  }
}

function connector(range: string, number: number): Peer {
  const address = `${range}.${number}` as Peer['address'];
  return peer(number, { address, type: 'connector', endpoint: dialled(number), routes: [] });
}
