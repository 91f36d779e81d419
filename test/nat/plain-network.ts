import { eventually } from '../lab/eventually.ts';
import type { NatLab, Site } from '../lab/nat/nat-lab.ts';
import { Tunnel } from '../lab/nat/tunnel.ts';
import { hasIpv6 } from './theory.ts';

/** A site with a plain WireGuard interface. */
export interface Member {
  readonly site: Site;
  readonly tunnel: Tunnel;
  /** Its endpoint as each connector observes it. The second connector has its IPv6 endpoint if the site has IPv6. */
  readonly observed: readonly string[];
}

const connectorPort = 51_820;

/** Sites with plain WireGuard, and two connectors in the internet that observe their endpoints. */
export class PlainNetwork {
  readonly #connectors: readonly Tunnel[];
  #count = 2;

  private constructor(connectors: readonly Tunnel[]) {
    this.#connectors = connectors;
  }

  static async start(nat: NatLab): Promise<PlainNetwork> {
    const connectors = [1, 2].map(async (number) => {
      const address = [`203.0.113.${number}/24`, `2001:db8::${number}/64`];
      const host = await nat.lab.addHost(`connector-${number}`, { address });
      return Tunnel.start(host, connectorPort, `10.99.0.${number}`);
    });
    return new PlainNetwork(await Promise.all(connectors));
  }

  /** Gives sites interfaces, each with a port of its own, and waits until the connectors observe all whose UDP passes. */
  async join(sites: readonly Site[]): Promise<Member[]> {
    const tunnels = await Promise.all(
      sites.map((site) => {
        const number = ++this.#count;
        return Tunnel.start(site.host, connectorPort + number, `10.99.0.${number}`);
      }),
    );
    const peers = tunnels.map(({ publicKey, address }) => `peer ${publicKey} allowed-ips ${address}/32`);
    await Promise.all(this.#connectors.map((connector) => connector.set(...peers)));
    return Promise.all(
      sites.map(async (site, index) => {
        const tunnel = tunnels[index] as Tunnel;
        const isBlocked = site.network.routers.some(({ nat }) => nat.udp === 'drop');
        await tunnel.set(...this.#connectors.map((each, at) => connectorPeer(each, at === 1 && hasIpv6(site))));
        const observed = await eventually(`the connectors observe ${site.host.name}`, async () => {
          const endpoints = await this.#observe(tunnel);
          return (isBlocked || endpoints.length === this.#connectors.length) && endpoints;
        });
        return { site, tunnel, observed };
      }),
    );
  }

  /** A member after its endpoint may have changed: it sends to both connectors. */
  async refresh(member: Member): Promise<Member> {
    for (const { address } of this.#connectors) {
      await eventually(`${member.site.host.name} reaches ${address}`, async () => {
        return (await member.site.host.ping(address)).received === 1;
      });
    }
    return { ...member, observed: await this.#observe(member.tunnel) };
  }

  async #observe({ publicKey }: Tunnel): Promise<string[]> {
    const seen = await Promise.all(this.#connectors.map(async (each) => (await each.peers()).get(publicKey)?.endpoint));
    return seen.filter((endpoint) => typeof endpoint === 'string');
  }
}

function connectorPeer({ host, publicKey, address }: Tunnel, usesIpv6: boolean): string {
  const endpoint = usesIpv6 ? `[2001:db8::${host.address.split('.').at(-1)}]` : host.address;
  return `peer ${publicKey} endpoint ${endpoint}:${connectorPort} persistent-keepalive 25 allowed-ips ${address}/32`;
}
