import { expect } from 'vitest';
import { type Office, plan, startOffice } from '../e2e/office.ts';
import type { Daemon, Mark } from '../lab/daemon.ts';
import { DnsServer } from '../lab/dns.ts';
import { eventually } from '../lab/eventually.ts';
import { applies, findActs } from './drift.ts';
import { addMember, answers, type Member, meet } from './drift-lab.ts';

/** A peer whose endpoint is a name. */
export interface NamedPeer extends Member {
  readonly name: string;
}

const noHost = '203.0.113.250';

/** A host whose daemon follows names, and two peers whose names do not exist at first: they have never answered. */
export class NamedLab {
  readonly office: Office;
  readonly kept: Member;
  /** A peer with an address as its endpoint. */
  readonly untouched: Member;
  readonly first: NamedPeer;
  readonly second: NamedPeer;
  readonly #dns: DnsServer;
  #zone: Record<string, readonly string[]>;

  private constructor(
    office: Office,
    dns: DnsServer,
    members: Pick<NamedLab, 'kept' | 'untouched' | 'first' | 'second'>,
  ) {
    this.office = office;
    this.kept = members.kept;
    this.untouched = members.untouched;
    this.first = members.first;
    this.second = members.second;
    this.#dns = dns;
    this.#zone = { [this.first.name]: [noHost], [this.second.name]: [noHost] };
  }

  /** Starts it, without a daemon. */
  static async start(): Promise<NamedLab> {
    const office = await startOffice();
    const dns = await DnsServer.start(await office.lab.addHost('dns', { address: '203.0.113.53/24' }));
    const untouched = await addMember(office, 'untouched', 12);
    const [first, second] = [await addNamed(office, 'first', 14), await addNamed(office, 'second', 15)];
    const kept = await addMember(office, 'kept', 13);
    const lab = new NamedLab(office, dns, { kept, untouched, first, second });
    await lab.publish();
    await dns.resolveFor(kept.host);
    await meet(kept, untouched);
    for (const { host } of [first, second]) await host.cpn(['reconcile']);
    return lab;
  }

  /** Points the name of a peer to its address, or to `address`. Counts lookups from now on. */
  async publish(peer?: NamedPeer, address = peer?.host.address): Promise<void> {
    if (peer && address) this.#zone = { ...this.#zone, [peer.name]: [address] };
    await this.#dns.serve(this.#zone);
  }

  /** Waits until a peer's name is looked up. */
  awaitQuestion({ name }: NamedPeer): Promise<void> {
    return this.#dns.awaitQuestion(name);
  }

  /** Waits until the daemon has logged both names, which do not exist. */
  async awaitNowhere(daemon: Daemon): Promise<void> {
    await daemon.awaitLog('both names', ({ msg, changes }) => msg === applies && (changes as string[]).length === 3);
    const { stdout } = await this.kept.host.exec(['wg', 'show', 'cpn0', 'endpoints']);
    expect(stdout.split(`\t${noHost}:51820\n`)).toHaveLength(3);
  }

  /** Whether a peer answers the host. */
  works({ joined }: Member): Promise<boolean> {
    return answers(this.kept.host, joined.address);
  }

  /** Waits until the daemon has a peer's new endpoint, and checks that it did nothing else since a mark. */
  async awaitMove(daemon: Daemon, { joined, host }: Member, mark: Mark, found: () => void): Promise<void> {
    const line = await daemon.awaitLog('the new endpoint', ({ msg }) => msg === applies, mark);
    found();
    const file = `update file ${this.kept.host.configDir}/cpn0.conf: the text differs`;
    expect(line.changes).toEqual([file, `update peer ${joined.public_key}: endpoint differ`]);
    await eventually(`${host.name} answers`, () => answers(this.kept.host, joined.address));
    expect(await plan(this.kept.host)).toEqual({ exitCode: 0, changes: [] });
    expect(findActs(daemon, mark)).toEqual([line]);
  }
}

async function addNamed(office: Office, hostName: string, number: number): Promise<NamedPeer> {
  const name = `${hostName}.example.net`;
  return { name, ...(await addMember(office, hostName, number, '--endpoint', `${name}:51820`)) };
}
