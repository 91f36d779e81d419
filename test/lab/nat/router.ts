import { Wire } from '../../packets/wire.ts';
import type { Host, PlugOptions } from '../host.ts';
import type { Segment } from '../segment.ts';
import { type Nat, renderNat } from './nat.ts';

/** A network that routers and hosts are plugged into, and the routers between it and the internet, innermost first. */
export interface Network {
  readonly segment: Segment;
  readonly routers: readonly Router[];
  /** The next free addresses, and their gateways. */
  assign(): PlugOptions;
}

/** A router of the lab with a NAT, and the network behind it. */
export class Router implements Network {
  readonly host: Host;
  readonly nat: Nat;
  readonly segment: Segment;
  readonly routers: readonly Router[];
  readonly #outside: PlugOptions;
  readonly #inside: { readonly prefix: string; readonly prefix6: string };
  #address: string;
  #otherPort = 40_000;
  #assigned = 9;

  /** Use `NatLab.addRouter`. `inside` begins the addresses of its network: `192.168.1.` */
  constructor(host: Host, nat: Nat, outside: Network, plug: PlugOptions, segment: Segment, inside: string) {
    this.host = host;
    this.nat = nat;
    this.segment = segment;
    this.routers = [this, ...outside.routers];
    this.#outside = plug;
    this.#address = host.address;
    const last = host.address.split('.').at(-1);
    this.#inside = { prefix: inside, prefix6: `2001:db8::${last}:` };
  }

  /** Its IPv4 address outside. */
  get address(): string {
    return this.#address;
  }

  /** Plugs it into its network and begins to forward. */
  async start(): Promise<void> {
    const { prefix, prefix6 } = this.#inside;
    const address = [`${prefix}1/24`, ...this.#ifIpv6(`${prefix6}1/112`)];
    await this.host.plug(this.segment, { address });
    const { mappingSeconds } = this.nat;
    const settings = [
      'net.ipv4.ip_forward=1',
      ...this.#ifIpv6(
        'net.ipv6.conf.all.forwarding=1',
        'net.ipv6.conf.eth0.proxy_ndp=1',
        'net.ipv6.neigh.eth0.proxy_delay=0',
      ),
      ...(mappingSeconds === undefined
        ? []
        : ['udp_timeout', 'udp_timeout_stream'].map((each) => `net.netfilter.nf_conntrack_${each}=${mappingSeconds}`)),
    ];
    // The hosts behind it have addresses of the segment outside.
    const neighbors = [10, 11, 12].flatMap((last) => this.#ifIpv6(`neigh add proxy ${prefix6}${last} dev eth0`));
    await this.#loadRules();
    await this.host.exec(['sh', '-ec', `sysctl -q -w ${settings.join(' ')}; exec ip -batch -`], {
      input: neighbors.map((line) => `${line}\n`).join(''),
    });
  }

  assign(): PlugOptions {
    const { prefix, prefix6 } = this.#inside;
    const last = ++this.#assigned;
    return {
      address: [`${prefix}${last}/24`, ...this.#ifIpv6(`${prefix6}${last}/112`)],
      gateway: [`${prefix}1`, ...this.#ifIpv6(`${prefix6}1`)],
    };
  }

  /** Forgets all mappings, as after a restart. Those of `other-port` are at another port afterwards. */
  async rebind(): Promise<void> {
    this.#otherPort += 1;
    await this.#loadRules();
    await this.#forgetFlows();
  }

  /** Gives it another address outside, in the same network. */
  async move(address: string): Promise<void> {
    const routes = [this.#outside.gateway ?? []].flat().filter((each) => !each.includes(':'));
    const batch = [
      `address del ${this.#address}/24 dev eth0`,
      `address add ${address}/24 dev eth0`,
      ...routes.map((each) => `route add default via ${each} dev eth0`),
    ];
    this.#address = address;
    await this.host.exec(['ip', '-batch', '-'], { input: `${batch.join('\n')}\n` });
    await this.#loadRules();
    await this.#forgetFlows();
  }

  async #loadRules(): Promise<void> {
    const input = renderNat(this.nat, { address: this.#address, otherPort: this.#otherPort });
    await this.host.exec(['nft', '-f', '-'], { input });
  }

  async #forgetFlows(): Promise<void> {
    await using wire = await Wire.start(this.host, []);
    await wire.exchange({ flush: true });
  }

  #ifIpv6(...values: string[]): string[] {
    return this.nat.ipv6 === 'firewall' ? values : [];
  }
}
