import { type Nat, nats } from '../lab/nat/nat.ts';
import type { NatLab, Site } from '../lab/nat/nat-lab.ts';
import type { Network, Router } from '../lab/nat/router.ts';

/** The sites of a lab, by the names of their hosts. */
export class Sites {
  readonly #nat: NatLab;
  readonly #sites = new Map<string, Site>();

  constructor(nat: NatLab) {
    this.#nat = nat;
  }

  get all(): Site[] {
    return [...this.#sites.values()];
  }

  find(name: string): Site {
    const site = this.#sites.get(name);
    if (site === undefined) throw new Error(`the lab has no host ${name}`);
    return site;
  }

  /** The router next to a host. */
  router(name: string): Router {
    const [router] = this.find(name).network.routers;
    if (router === undefined) throw new Error(`${name} has no router`);
    return router;
  }

  /** Adds hosts to one network. */
  async add(network: Network, ...names: string[]): Promise<void> {
    const added = await Promise.all(names.map((name) => this.#nat.addHost(name, network)));
    for (const site of added) this.#sites.set(site.host.name, site);
  }

  /** Adds a router called `${names[0]}-router`, and hosts behind it. */
  async addHome(names: readonly string[], kind: Nat, outside?: Network): Promise<void> {
    const [name = ''] = names;
    const router = await this.#nat.addRouter(`${name}-router`, kind, outside);
    await this.add(router, ...names);
  }

  /** Adds a router whose network has other routers, each with a host behind it. */
  async addCarrier(names: readonly string[], kind: Nat): Promise<void> {
    const carrier = await this.#nat.addRouter(`${names[0]}-carrier`, kind, undefined, '100.64.0.');
    await Promise.all(names.map((name) => this.addHome([name], nats.portPreserving, carrier)));
  }

  /** Adds all kinds of sites. Packets between the sites `far-…` and the others take a while. */
  async addAll(): Promise<void> {
    const { internet, far } = this.#nat;
    const additions = [
      () => this.add(internet, 'public'),
      () => this.add(far, 'far-public'),
      () => this.addHome(['home-1', 'neighbor'], nats.portPreserving),
      () => this.addHome(['home-2'], nats.portPreserving),
      () => this.addHome(['other-port'], nats.otherPort),
      () => this.addHome(['by-address'], nats.addressFiltering),
      () => this.addHome(['unfiltered'], nats.noFiltering),
      () => this.addHome(['symmetric'], nats.symmetric),
      () => this.addHome(['ipv6-1'], nats.ipv6),
      () => this.addHome(['ipv6-2'], nats.ipv6),
      () => this.addCarrier(['double'], nats.portPreserving),
      () => this.addCarrier(['carrier-1', 'carrier-2'], nats.portPreserving),
      () => this.addCarrier(['hairpin-1', 'hairpin-2'], nats.hairpin),
      () => this.addHome(['accepting'], nats.accepting),
      () => this.addHome(['far-accepting'], nats.accepting, far),
      () => this.addHome(['rejecting'], nats.rejecting),
      () => this.addHome(['no-udp'], nats.noUdp),
      () => this.addHome(['short'], { ...nats.portPreserving, mappingSeconds: 2 }),
    ].values();
    // More at a time are no faster, and on a busy machine each takes too long to start.
    const addInTurn = async () => {
      for (const add of additions) await add();
    };
    await Promise.all(Array.from({ length: 4 }, addInTurn));
  }
}
