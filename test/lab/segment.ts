import type { Namespace } from './namespace.ts';
import { run } from './run.ts';

/** A switch that hosts are plugged into: a bridge in the lab's own namespace, where no IP is spoken. */
export class Segment {
  readonly name: string;
  readonly bridge: string;
  readonly #switches: Namespace;
  readonly #number: () => number;

  private constructor(name: string, switches: Namespace, number: () => number) {
    this.name = name;
    this.bridge = `s${number()}`;
    this.#switches = switches;
    this.#number = number;
  }

  /** Makes the switch. `number` gives numbers that nothing else in the namespace has. */
  static async start(name: string, switches: Namespace, number: () => number): Promise<Segment> {
    const segment = new Segment(name, switches, number);
    const { bridge } = segment;
    await segment.ip(
      `link add ${bridge} type bridge stp_state 0 forward_delay 0 mcast_snooping 0`,
      `link set ${bridge} up`,
    );
    return segment;
  }

  /** A free port, for a card that its host will call `card`. */
  port(card: string): Link {
    return new Link(card, this, this.#number());
  }

  /** Runs lines of `ip -batch` where the switches are. */
  async ip(...lines: string[]): Promise<void> {
    const argv = this.#switches.enter(['ip', '-batch', '-']);
    await run(argv, { input: `${lines.join('\n')}\n`, wrapped: true, label: `segment ${this.name}` });
  }
}

/** One network card of a host and its cable to a switch. The card keeps its hardware address over reboots. */
export class Link {
  /** The card's name on the host: `eth0`, `eth1`, … */
  readonly name: string;
  readonly segment: Segment;
  readonly mac: string;
  readonly #port: string;

  constructor(name: string, segment: Segment, number: number) {
    this.name = name;
    this.segment = segment;
    this.#port = `p${number}`;
    this.mac = `02:00:00:00:${(number >> 8).toString(16).padStart(2, '0')}:${(number & 255).toString(16).padStart(2, '0')}`;
  }

  /** Puts the card into the network namespace of process `pid`. */
  async insert(pid: number): Promise<void> {
    const peer = `peer name ${this.name} address ${this.mac} netns /proc/${pid}/ns/net`;
    await this.segment.ip(`link add ${this.#port} type veth ${peer}`, ...this.#connected());
  }

  /** Takes the card out of its host. */
  async remove(): Promise<void> {
    await this.segment.ip(`link delete ${this.#port}`);
  }

  /** Loses every packet from now on, while the host still sees a carrier: a fault somewhere upstream. */
  async cut(): Promise<void> {
    await this.segment.ip(`link set ${this.#port} nomaster`);
  }

  /** Takes the carrier away. */
  async unplug(): Promise<void> {
    await this.segment.ip(`link set ${this.#port} down`);
  }

  /** Undoes `cut` and `unplug`. */
  async restore(): Promise<void> {
    await this.segment.ip(...this.#connected());
  }

  #connected(): string[] {
    return [`link set ${this.#port} master ${this.segment.bridge}`, `link set ${this.#port} up`];
  }
}
