/**
 * The hosts of a random day: a data center with two connectors in front of two LANs, an origin, a laptop behind a NAT, and a stranger
 * on the WAN who sends to the first LAN all the time. What has to hold on them is in `invariants.ts`.
 *
 * @module
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DataCenter } from '../e2e/data-center.ts';
import { keyFlags, makeKey, serveControlPlane } from '../lab/control-plane.ts';
import { Daemon, startDaemon } from '../lab/daemon.ts';
import type { ExecOptions, Host } from '../lab/host.ts';
import { previousProgram } from '../lab/previous-program.ts';
import type { Outcome, Process } from '../lab/process.ts';
import { serveSessions } from '../lab/ssh-session.ts';
import { type Connector, connectors, lans, type Member, members } from './model.ts';

/** The second network of a host, and its range. */
export const second = { name: 'lab', cidr: '10.88.0.0/24' };

/** Where the stranger's packets come in: nothing else uses this port. */
const strangerPort = 4242;

/** The stranger sends to each address of the LAN's server through one connector. */
const strangersTargets: Readonly<Record<Connector, string>> = { 'edge-1': '192.168.50.11', 'edge-2': '192.168.50.12' };

/** Undoes what others did to a host during a day. The arguments are addresses with which the host began, each after its card. */
const undoForeign = `exec 2>/dev/null
nft delete table inet ufwlike; nft delete table ip dockerlike; ip link delete docker0; echo 0 >/proc/sys/net/ipv4/ip_forward
ip route delete default via 203.0.113.66; ip route flush proto bgp
while [ $# -gt 0 ]; do
  old=$(ip -o -4 address show dev "$1" | awk '{print $4}')
  [ "$old" = "$2/24" ] || { ip address delete "$old" dev "$1"; ip address add "$2/24" dev "$1"; }
  shift 2
done`;

export class Site {
  readonly center: DataCenter;
  readonly hosts: Readonly<Record<Member, Host>>;
  readonly stranger: Host;
  /** The router between the laptop and the WAN. */
  readonly nat: Host;
  /** The address of each connector on the WAN, which changes during a day. */
  readonly addresses: Record<Connector, string> = { 'edge-1': '203.0.113.31', 'edge-2': '203.0.113.32' };
  /** All that commands and daemons wrote. */
  readonly said: string[] = [];
  /** The private keys, preshared keys and tokens that hosts had during the day. */
  readonly secrets = new Set<string>();
  /** The state of each host before it joined. */
  readonly #before = new Map<Member, string>();
  #plane: Process;

  private constructor(center: DataCenter, hosts: Record<Member, Host>, stranger: Host, nat: Host) {
    this.center = center;
    this.hosts = hosts;
    this.stranger = stranger;
    this.nat = nat;
    this.#plane = center.controlPlane.process;
  }

  static async start(): Promise<Site> {
    const center = await DataCenter.start();
    const { lab } = center;
    await center.owner.createNetwork(second.name, second.cidr);
    const other = await lab.addSegment('second-lan');
    await center.server.plug(other, { address: `${lans.second.server}/24` });
    const [edge1, edge2] = [
      await lab.addHost('edge-1', { address: '203.0.113.31/24' }),
      await lab.addHost('edge-2', { address: '203.0.113.32/24' }),
    ];
    for (const [index, edge] of [edge1, edge2].entries()) {
      await edge.plug(center.lan, { address: `192.168.50.${index + 1}/24` });
      await edge.plug(other, { address: `192.168.60.${index + 1}/24` });
    }
    const origin = await lab.addHost('origin', { address: '203.0.113.22/24' });
    const home = await lab.addNat('laptop-home', { outside: '203.0.113.44/24', inside: '192.168.1.1/24' });
    const laptop = await home.addHost('laptop', '192.168.1.10/24');
    const stranger = await lab.addHost('stranger', { address: '203.0.113.66/24' });
    const site = new Site(center, { 'edge-1': edge1, 'edge-2': edge2, origin, laptop }, stranger, home.router);
    for (const name of members) {
      site.#before.set(name, await site.#state(name));
      await site.join(name);
    }
    await site.#letStrangerTry();
    await serveSessions(origin);
    return site;
  }

  async stop(): Promise<void> {
    await this.center.stop();
  }

  host(name: Member): Host {
    return this.hosts[name];
  }

  /** The address of a member in the network. */
  tunnelAddress(name: Member): string {
    return this.center.address(this.hosts[name]);
  }

  /** Runs a command on a member. */
  async cpn(name: Member, args: readonly string[], options?: ExecOptions): Promise<Outcome> {
    const outcome = await this.hosts[name].cpn(args, options);
    this.said.push(outcome.stdout, outcome.stderr);
    return outcome;
  }

  /** Runs a shell script on a member. */
  sh(name: Member, script: string, options?: ExecOptions): Promise<Outcome> {
    return this.hosts[name].exec(['sh', '-c', script], options);
  }

  /** Joins a member, and starts its daemon. */
  async join(name: Member): Promise<void> {
    const host = this.hosts[name];
    const types: Record<Member, string> = {
      'edge-1': 'connector',
      'edge-2': 'connector',
      origin: 'origin',
      laptop: 'admin_device',
    };
    const address = { ...this.addresses, origin: host.address, laptop: null }[name];
    await this.center.join(
      host,
      ...['--type', types[name]],
      ...(address === null ? [] : ['--endpoint', `${address}:51820`]),
      ...(types[name] === 'connector' ? ['--probe', lans.first.server] : []),
    );
    this.said.push(JSON.stringify(this.center.joined.get(host)));
  }

  async joinSecond(name: Member): Promise<void> {
    const flags = ['--type', 'origin'];
    const key = await makeKey(this.center.controlPlane, second.name, name, ...keyFlags(flags));
    const api = ['--api', this.center.controlPlane.url, '--insecure-http'];
    await this.cpn(name, ['join', '-', ...api, '--wait', '0', '--name', name, ...flags], { input: key });
  }

  daemon(name: Member): Daemon {
    return this.center.daemon(this.hosts[name]);
  }

  async stopDaemon(name: Member, how: 'TERM' | 'KILL' = 'TERM'): Promise<void> {
    const daemon = this.daemon(name);
    if (how === 'KILL') daemon.process.signal('SIGKILL');
    const { stdout, stderr } = await daemon.stop();
    this.said.push(stdout, stderr);
  }

  async startDaemon(name: Member): Promise<void> {
    this.center.daemons.set(this.hosts[name], await startDaemon(this.hosts[name]));
  }

  /** Starts the daemon of the previous version, and waits until it has made the tunnel. */
  async startPreviousDaemon(name: Member): Promise<void> {
    const program = join(await previousProgram(), 'cpn.js');
    const daemon = new Daemon(this.hosts[name].spawn([program, 'run']));
    this.center.daemons.set(this.hosts[name], daemon);
    await daemon.awaitLog('the start', (line) => line.msg === 'started');
  }

  /** Ends the control plane; its data stays. */
  async stopPlane(how: 'TERM' | 'KILL' = 'TERM'): Promise<void> {
    if (how === 'KILL') this.#plane.signal('SIGKILL');
    const { stdout, stderr } = await this.#plane.stop(10_000);
    this.said.push(stdout, stderr);
  }

  async startPlane(): Promise<void> {
    const { host, url } = this.center.controlPlane;
    this.#plane = await serveControlPlane(host, new URL(url).hostname, join(host.homeDir, 'password'), []);
  }

  /** A connector gets another address on the WAN: the stranger's route into the LAN follows it. */
  async moveConnector(name: Connector, address: string): Promise<void> {
    this.addresses[name] = address;
    await this.#aimStranger(name);
  }

  async setResolver(name: Member, address: string): Promise<void> {
    const text = `nameserver ${address}\noptions timeout:1 attempts:1\n`;
    await writeFile(join(this.hosts[name].etcDir, 'resolv.conf'), text);
  }

  /** The packets of the stranger that came into the LAN so far. */
  async countLeaks(): Promise<number> {
    const { stdout } = await this.center.server.exec(['nft', 'list', 'table', 'inet', 'strangers']);
    return Number(/counter packets (\d+)/.exec(stdout)?.[1]);
  }

  /** The answers that the stranger got from tunnel addresses so far. */
  async countAnswers(): Promise<number> {
    const { stdout } = await this.stranger.exec(['nft', 'list', 'table', 'inet', 'answers']);
    return Number(/counter packets (\d+)/.exec(stdout)?.[1]);
  }

  /** Notes the secrets that a member has now. */
  async noteSecrets(name: Member): Promise<void> {
    const { configDir, stateDir } = this.hosts[name];
    const read = (path: string) => readFile(path, 'utf8').catch(() => '');
    for (const link of ['cpn0', 'cpn1']) {
      const config = await read(join(configDir, `${link}.conf`));
      for (const [, key] of config.matchAll(/(?:PrivateKey|PresharedKey) = (\S+)/g)) this.secrets.add(`${key}`);
      const state = await read(join(stateDir, `${link}.json`));
      for (const [token] of state.matchAll(/\bcp[nptu]_[\w-]{16,}/g)) this.secrets.add(token);
    }
  }

  /** What is on a member that was not there before it joined, or the reverse, once others' changes are undone. */
  async findLeft(name: Member): Promise<string[]> {
    const index = connectors.indexOf(name as Connector);
    const moving = index < 0 ? [] : ['eth0', this.hosts[name].address, 'eth1', `192.168.50.${index + 1}`];
    await this.hosts[name].exec(['sh', '-c', undoForeign, 'sh', ...moving]);
    await this.setResolver(name, '127.0.0.1');
    const before = (this.#before.get(name) ?? '').split('\n');
    const after = (await this.#state(name)).split('\n');
    const [had, has] = [new Set(before), new Set(after)];
    return [
      ...after.filter((line) => !had.has(line)).map((line) => `left: ${line}`),
      ...before.filter((line) => !has.has(line)).map((line) => `gone: ${line}`),
    ];
  }

  /** The state of a member without processes, some of which are those of the day itself. */
  async #state(name: Member): Promise<string> {
    const sections = (await this.hosts[name].state()).split('\n\n');
    return sections.filter((section) => !section.startsWith('# processes')).join('\n');
  }

  async #aimStranger(name: Connector): Promise<void> {
    const route = [`${strangersTargets[name]}/32`, 'via', this.addresses[name]];
    await this.stranger.exec(['ip', 'route', 'replace', ...route]);
    await this.stranger.exec(['ip', 'route', 'replace', `${this.tunnelAddress(name)}/32`, 'via', this.addresses[name]]);
  }

  async #letStrangerTry(): Promise<void> {
    const { server } = this.center;
    for (const name of connectors) {
      await server.exec(['ip', 'address', 'add', `${strangersTargets[name]}/24`, 'dev', 'eth0']);
      await this.#aimStranger(name);
    }
    const rules = `table inet strangers { chain input { type filter hook input priority 0; udp dport ${strangerPort} counter drop; }; }`;
    await server.exec(['nft', '-f', '-'], { input: rules });
    const { origin } = this.hosts;
    await this.stranger.exec(['ip', 'route', 'replace', `${this.tunnelAddress('origin')}/32`, 'via', origin.address]);
    const answers =
      'table inet answers { chain input { type filter hook input priority 0; ip saddr 10.77.0.0/24 counter; }; }';
    await this.stranger.exec(['nft', '-f', '-'], { input: answers });
    const addresses = [...connectors, 'origin' as const].map((name) => this.tunnelAddress(name)).join(' ');
    const pings = `while sleep 0.2; do for each in ${addresses}; do ping -n -c 1 -W 0.1 $each >/dev/null; done; done`;
    this.stranger.spawn(['bash', '-c', pings]);
    const targets = Object.values(strangersTargets).join(' ');
    const script = `while sleep 0.1; do for each in ${targets}; do echo x 2>/dev/null >/dev/udp/$each/${strangerPort}; done; done`;
    this.stranger.spawn(['bash', '-c', script]);
  }
}
