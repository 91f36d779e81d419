/**
 * The hosts of a random day, and what has to hold on them whenever they have settled: a data center with two connectors in front of
 * a LAN, an origin, a laptop behind a NAT, and a stranger on the WAN who tries to get into the LAN all the time.
 *
 * @module
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DataCenter, lanRoute, serverAddress } from '../e2e/data-center.ts';
import { plan, status } from '../e2e/office.ts';
import { keyFlags, makeKey } from '../lab/control-plane.ts';
import { startDaemon } from '../lab/daemon.ts';
import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { dialSession, type SshSession, serveSessions } from '../lab/ssh-session.ts';

export const connectors = ['edge-1', 'edge-2'] as const;
export const members = [...connectors, 'origin', 'laptop'] as const;
export type Connector = (typeof connectors)[number];
export type Member = (typeof members)[number];

/** What should be, as far as it decides who reaches whom. */
export interface Model {
  /** The members that have joined and are powered on. */
  readonly present: Set<Member>;
  /** The connectors that are drained. */
  readonly drained: Set<Connector>;
  /** The connectors on which something like docker runs. */
  readonly dockers: Set<Connector>;
  /** Whether the network advertises the LAN. */
  isLanRouted: boolean;
  /** The members that are in the second network too. */
  readonly elsewhere: Set<Member>;
  /** Whether strangers may have slipped through since the hosts were last settled: packet rules were flushed. */
  isLeakExcused: boolean;
}

export function initialModel(): Model {
  return {
    present: new Set(members),
    drained: new Set(),
    dockers: new Set(),
    isLanRouted: true,
    elsewhere: new Set(),
    isLeakExcused: false,
  };
}

/** How long hosts may take until everything holds: a lost connector, and handshakes without an answer, need their time. */
const patience = { timeoutMs: 60_000, everyMs: 300 };

/** The second network of a host, and its range. */
export const second = { name: 'lab', cidr: '10.88.0.0/24' };

/** Where the stranger's packets would come in: nothing else uses this port. */
const strangerPort = 4242;

/** The stranger sends to each address of the LAN's server by way of one connector. */
const strangersTargets: Readonly<Record<Connector, string>> = { 'edge-1': '192.168.50.11', 'edge-2': '192.168.50.12' };

export class Site {
  readonly center: DataCenter;
  readonly hosts: Readonly<Record<Member, Host>>;
  readonly stranger: Host;
  /** The flags with which each member joins; endpoints change during a day. */
  readonly flags: Record<Member, string[]>;
  #session: SshSession | null = null;
  #leaked = 0;
  #typed = 0;
  /** What daemons said that have ended. */
  readonly #said: string[] = [];

  private constructor(
    center: DataCenter,
    hosts: Record<Member, Host>,
    stranger: Host,
    flags: Record<Member, string[]>,
  ) {
    this.center = center;
    this.hosts = hosts;
    this.stranger = stranger;
    this.flags = flags;
  }

  static async start(): Promise<Site> {
    const center = await DataCenter.start();
    await center.owner.createNetwork(second.name, second.cidr);
    const edge1 = await center.addConnector(1);
    const edge2 = await center.addConnector(2);
    const origin = await center.addOrigin('origin', '203.0.113.22');
    const laptop = await center.addLaptop('laptop', '203.0.113.44');
    const flags: Record<Member, string[]> = {
      'edge-1': ['--type', 'connector', '--endpoint', `${edge1.address}:51820`],
      'edge-2': ['--type', 'connector', '--endpoint', `${edge2.address}:51820`],
      origin: ['--type', 'origin', '--endpoint', `${origin.address}:51820`],
      laptop: ['--type', 'admin_device'],
    };
    const stranger = await center.lab.addHost('stranger', { address: '203.0.113.66/24' });
    const site = new Site(center, { 'edge-1': edge1, 'edge-2': edge2, origin, laptop }, stranger, flags);
    await site.#letStrangerTry();
    await serveSessions(origin);
    await site.settle(initialModel());
    return site;
  }

  async stop(): Promise<void> {
    await this.center.stop();
  }

  host(name: Member): Host {
    return this.hosts[name];
  }

  /** The addresses of a member in the network. */
  tunnelAddress(name: Member): string {
    return this.center.address(this.hosts[name]);
  }

  /** Joins a member with the flags of the day, and starts its daemon. */
  async join(name: Member): Promise<void> {
    await this.center.join(this.hosts[name], ...this.flags[name]);
  }

  async joinSecond(name: Member): Promise<void> {
    const flags = ['--type', 'origin'];
    const key = await makeKey(this.center.controlPlane, second.name, name, ...keyFlags(flags));
    const api = ['--api', this.center.controlPlane.url, '--insecure-http'];
    await this.hosts[name].cpn(['join', '-', ...api, '--wait', '0', '--name', name, ...flags], { input: key });
  }

  async stopDaemon(name: Member, how: 'TERM' | 'KILL' = 'TERM'): Promise<void> {
    const daemon = this.center.daemon(this.hosts[name]);
    if (how === 'KILL') daemon.process.signal('SIGKILL');
    const { stdout, stderr } = await daemon.stop();
    this.#said.push(stdout, stderr);
  }

  async startDaemon(name: Member): Promise<void> {
    this.center.daemons.set(this.hosts[name], await startDaemon(this.hosts[name]));
  }

  /** The stranger's way into the LAN follows a connector that has another address on the WAN. */
  async aimStranger(name: Connector, gateway: string): Promise<void> {
    await this.stranger.exec(['ip', 'route', 'replace', `${strangersTargets[name]}/32`, 'via', gateway]);
  }

  /** Ends the session that goes through the tunnel; the next one is opened once all is settled. */
  endSession(): void {
    this.#session = null;
  }

  /** Waits until everything holds that has to, and fails with what does not. */
  async settle(model: Model): Promise<void> {
    await eventually('everything holds', () => this.#examine(model), patience);
    const leaked = await this.#countLeaks();
    if (leaked > this.#leaked && !model.isLeakExcused) {
      throw new Error(`${leaked - this.#leaked} packets of a stranger passed a connector`);
    }
    this.#leaked = leaked;
    model.isLeakExcused = false;
    await this.#examineSession(model);
  }

  /** Nothing that a daemon said has a secret of its host. */
  async examineSecrets(): Promise<void> {
    const secrets: string[] = [];
    for (const name of members) {
      const host = this.hosts[name];
      const { output } = this.center.daemon(host).process;
      this.#said.push(output.stdout, output.stderr);
      const file = await readFile(join(host.configDir, 'cpn0.conf'), 'utf8').catch(() => '');
      secrets.push(...[...file.matchAll(/(?:PrivateKey|PresharedKey) = (\S+)/g)].flatMap(([, key]) => key ?? []));
    }
    const said = this.#said.join('\n');
    const told = [...secrets.filter((secret) => said.includes(secret)), ...(said.match(/\bcp[npu]_[\w-]{16,}/g) ?? [])];
    if (told.length > 0) throw new Error(`${told.length} secrets were logged`);
  }

  /** True when all holds; throws what does not. */
  async #examine(model: Model): Promise<true> {
    const present = members.filter((name) => model.present.has(name));
    const found = await Promise.all(present.map((name) => this.#examineMember(name, model)));
    const wrong = found.flat();
    if (wrong.length > 0) throw new Error(wrong.join('\n'));
    return true;
  }

  async #examineMember(name: Member, model: Model): Promise<string[]> {
    const host = this.hosts[name];
    const others = members.filter((each) => each !== name && model.present.has(each));
    const serving = connectors.some((each) => model.present.has(each) && !model.drained.has(each));
    const inLan = (connectors as readonly string[]).includes(name);
    const reachesLan = inLan || (model.isLanRouted && serving);
    const wanted = new Map<string, string>(others.map((other) => [this.tunnelAddress(other), other]));
    if (reachesLan) wanted.set(serverAddress, 'the LAN');
    const unwanted = reachesLan ? [] : [serverAddress];
    const answered = await pingAll(host, [...wanted.keys(), ...unwanted]);
    const wrong = [
      ...[...wanted]
        .filter(([address]) => !answered.has(address))
        .map(([address, what]) => `${name}: no answer of ${what} (${address})`),
      ...unwanted
        .filter((address) => answered.has(address))
        .map((address) => `${name}: ${address} answers, and should not`),
    ];
    // What ping does not see, status cannot know yet.
    if (wrong.length > 0) return wrong;
    const [seen, planned, checked] = [
      await status(host),
      await plan(host),
      await host.cpn(['status', '--check', '--json'], { allowFailure: true }),
    ];
    if (seen.state !== 'up') wrong.push(`${name}: status says ${seen.state}: ${JSON.stringify(seen.warnings)}`);
    if (seen.drift.length > 0) wrong.push(`${name}: drift ${JSON.stringify(seen.drift)}`);
    if (planned.exitCode !== 0) wrong.push(`${name}: plan has ${JSON.stringify(planned.changes)}`);
    if (checked.exitCode !== 0) wrong.push(`${name}: status --check exits with ${checked.exitCode}`);
    const networks = JSON.parse(checked.stdout).networks.length;
    if (networks !== (model.elsewhere.has(name) ? 2 : 1)) wrong.push(`${name}: is in ${networks} networks`);
    return wrong;
  }

  /** A session through the tunnel survives whatever a day brings to the hosts between its ends. */
  async #examineSession(model: Model): Promise<void> {
    if (!model.present.has('origin') || !model.present.has('laptop')) return this.endSession();
    if (this.#session === null) this.#session = await dialSession(this.hosts.laptop, this.tunnelAddress('origin'));
    this.#typed += 1;
    await this.#session.type(`line ${this.#typed}`);
  }

  async #letStrangerTry(): Promise<void> {
    const { server } = this.center;
    for (const [name, target] of Object.entries(strangersTargets) as [Connector, string][]) {
      await server.exec(['ip', 'address', 'add', `${target}/24`, 'dev', 'eth0']);
      await this.aimStranger(name, this.hosts[name].address);
    }
    const rules = `table inet strangers { chain input { type filter hook input priority 0; udp dport ${strangerPort} counter drop; }; }`;
    await server.exec(['nft', '-f', '-'], { input: rules });
    const targets = Object.values(strangersTargets).join(' ');
    const script = `while sleep 0.1; do for each in ${targets}; do echo x 2>/dev/null >/dev/udp/$each/${strangerPort}; done; done`;
    this.stranger.spawn(['bash', '-c', script]);
  }

  async #countLeaks(): Promise<number> {
    const { stdout } = await this.center.server.exec(['nft', 'list', 'table', 'inet', 'strangers']);
    return Number(/counter packets (\d+)/.exec(stdout)?.[1]);
  }
}

/** The addresses that answer, of these. */
async function pingAll(host: Host, addresses: readonly string[]): Promise<ReadonlySet<string>> {
  const script = 'for each; do (ping -n -c 1 -W 2 "$each" >/dev/null && echo "$each") & done; wait';
  const { stdout } = await host.exec(['sh', '-c', script, 'sh', ...addresses]);
  return new Set(stdout.trim().split('\n'));
}

export { lanRoute };
