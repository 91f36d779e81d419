/**
 * A simulated host: namespaces of its own, an /etc and a /run of its own, and folders for the program under test.
 *
 * @module
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { builtProgram, REPOSITORY } from './built-program.ts';
import { CommandServer } from './command-server.ts';
import { Namespace } from './namespace.ts';
import { type Outcome, Process } from './process.ts';
import { failIfUnwanted, type RunOptions, run } from './run.ts';
import type { Link, Segment } from './segment.ts';
import { hostState } from './state.ts';

/**
 * $1 is the host's folder, $2 its name. /etc is a folder of links to the machine's /etc, so that a host reads what the machine has and
 * changes only what is its own; there, files can be replaced by renaming, as on a real host. SIGCHLD ignored means that orphans
 * leave no zombies behind.
 */
const HOLDER = `
set -e
read -r pid _ </proc/self/stat
mount --bind /etc "$1/machine-etc"
mount -o remount,bind,ro "$1/machine-etc"
[ -e "$1/etc/passwd" ] || find "$1/machine-etc" -mindepth 1 -maxdepth 1 \\
  ! -name hosts ! -name hostname ! -name resolv.conf ! -name wireguard \\
  '(' -type l -exec cp -P -t "$1/etc" {} + -o -exec ln -s -t "$1/etc" {} + ')'
mount --bind "$1/etc" /etc
mount --bind "$1/run" /run
mount -t proc proc /proc
mount -t sysfs sysfs /sys
hostname "$2"
ip link set lo up
echo "ready $pid"
exec env --ignore-signal=CHLD cat >/dev/null
`;

/** How to plug a host into a segment. */
export interface PlugOptions {
  /** `203.0.113.22/24`, or several, of either family. */
  readonly address: string | readonly string[];
  /** The router of its default routes. */
  readonly gateway?: string | readonly string[] | undefined;
}

/** Options of a run inside a host. */
export type ExecOptions = Pick<RunOptions, 'input' | 'env' | 'timeoutMs' | 'allowFailure'>;

/** Options of a program that is left running inside a host. */
export type SpawnOptions = Pick<RunOptions, 'input' | 'env' | 'holdInput'>;

/**
 * A simulated host. Its folders are the same paths inside and outside, so a test reads and edits files with plain `fs`. As on a fresh
 * machine there is an empty /etc/wireguard and a home, but no state, runtime or XDG folder yet.
 */
export class Host {
  readonly name: string;
  /** Its first IPv4 address, without the prefix length. */
  address = '';
  /** All that belongs to it on disk: `etc` is its /etc, `run` its /run. */
  readonly folder: string;
  /** Its /etc: `hosts`, `resolv.conf` and `wireguard` are its own, the rest the machine's. */
  readonly etcDir: string;
  /** `CPN_CONFIG_DIR`; /etc/wireguard inside. */
  readonly configDir: string;
  /** `CPN_STATE_DIR`. */
  readonly stateDir: string;
  /** `CPN_RUNTIME_DIR`; /run/cpn inside, gone after a reboot. */
  readonly runtimeDir: string;
  /** `HOME`. */
  readonly homeDir: string;
  /** The last folder of its `PATH`, for programs of this host alone; absent at first. */
  readonly binDir: string;
  /** `XDG_CONFIG_HOME`. */
  readonly xdgConfigDir: string;
  /** The environment of everything that runs inside. */
  readonly env: Readonly<Record<string, string>>;
  readonly #parent: Namespace;
  readonly #servesCommands: boolean;
  readonly #plugs: { readonly link: Link; readonly options: PlugOptions }[] = [];
  #namespace: Namespace | undefined;
  #commands: CommandServer | undefined;

  /** Use `lab.addHost`. */
  constructor(
    name: string,
    folder: string,
    parent: Namespace,
    env: Readonly<Record<string, string>>,
    servesCommands: boolean,
  ) {
    this.name = name;
    this.folder = folder;
    this.etcDir = join(folder, 'etc');
    this.configDir = join(folder, 'etc', 'wireguard');
    this.stateDir = join(folder, 'state');
    this.runtimeDir = join(folder, 'run', 'cpn');
    this.homeDir = join(folder, 'home');
    this.binDir = join(folder, 'bin');
    this.xdgConfigDir = join(folder, 'home', '.config');
    this.env = {
      ...env,
      PATH: `${env.PATH}:${this.binDir}`,
      HOME: this.homeDir,
      XDG_CONFIG_HOME: this.xdgConfigDir,
      CPN_CONFIG_DIR: this.configDir,
      CPN_STATE_DIR: this.stateDir,
      CPN_RUNTIME_DIR: this.runtimeDir,
    };
    this.#parent = parent;
    this.#servesCommands = servesCommands;
  }

  /** Its network cards, `eth0` first. */
  get links(): readonly Link[] {
    return this.#plugs.map(({ link }) => link);
  }

  /** Its first network card, where most faults are made. */
  get uplink(): Link {
    const [first] = this.links;
    if (first === undefined) throw new Error(`${this.name}: the host has no link`);
    return first;
  }

  /** Makes its folders and starts it, without any link. */
  async start(): Promise<void> {
    for (const folder of [this.folder, this.etcDir, join(this.folder, 'machine-etc')]) await mkdir(folder);
    for (const folder of [this.configDir, this.homeDir]) await mkdir(folder, { mode: 0o700 });
    await writeFile(join(this.etcDir, 'hostname'), `${this.name}\n`);
    await writeFile(join(this.etcDir, 'hosts'), `127.0.0.1 localhost\n::1 localhost\n127.0.1.1 ${this.name}\n`);
    // Nothing listens there, so a lookup fails at once instead of leaving the lab.
    await writeFile(join(this.etcDir, 'resolv.conf'), 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n');
    await this.boot();
  }

  /** Gives it one more network card, in `segment`. */
  async plug(segment: Segment, options: PlugOptions): Promise<Link> {
    const link = segment.port(`eth${this.#plugs.length}`);
    this.#plugs.push({ link, options });
    this.address ||=
      [options.address]
        .flat()
        .find((each) => !each.includes(':'))
        ?.split('/')[0] ?? '';
    await this.#configure(link, options);
    return link;
  }

  /** Starts it after `powerOff`, with the same disk and cards and an empty /run. */
  async boot(): Promise<void> {
    const run = join(this.folder, 'run');
    await rm(run, { recursive: true, force: true });
    await mkdir(join(run, 'wireguard'), { recursive: true });
    const label = `${this.name}: start`;
    const args = [this.folder, this.name];
    this.#namespace = await Namespace.start({ label, script: HOLDER, args, env: this.env, parent: this.#parent });
    for (const { link, options } of this.#plugs) await this.#configure(link, options);
  }

  /** Kills everything on it at once, as a power cut does. Its files stay. */
  async powerOff(): Promise<void> {
    this.#commands = undefined;
    for (const { link } of this.#plugs) await link.remove();
    await this.#namespace?.stop();
    this.#namespace = undefined;
  }

  /** A power cut and a boot. */
  async reboot(): Promise<void> {
    await this.powerOff();
    await this.boot();
  }

  /** Runs a program to its end; throws when it fails, unless `allowFailure` is set, and when it takes longer than `timeoutMs`, 15 s by default. */
  exec(argv: readonly string[], options: ExecOptions = {}): Promise<Outcome> {
    return run(this.enter(argv), {
      ...options,
      env: { ...this.env, ...options.env },
      wrapped: true,
      label: this.#label(argv),
    });
  }

  /** Starts a program and leaves it running. */
  spawn(argv: readonly string[], options: SpawnOptions = {}): Process {
    return new Process(this.enter(argv), {
      ...options,
      env: { ...this.env, ...options.env },
      wrapped: true,
      label: this.#label(argv),
    });
  }

  /**
   * Runs a command of the built program: in the host's command server, where the lab has these. The command has a process of its own
   * too where its environment is for Node, and while the server runs another command.
   */
  async cpn(args: readonly string[], options: ExecOptions = {}): Promise<Outcome> {
    const program = await builtProgram();
    const { env = {}, input = '', timeoutMs = 60_000, allowFailure } = options;
    const isForNode = Object.keys(env).some((name) => !name.startsWith('CPN_'));
    if (!this.#servesCommands || isForNode || this.#commands?.isBusy) {
      return this.exec([program, ...args], { ...options, timeoutMs });
    }
    if (this.#commands?.pid === undefined) {
      this.#commands = new CommandServer((argv) => this.spawn(argv, { holdInput: true }));
    }
    const label = `${this.name}: cpn ${args.join(' ')}`;
    return failIfUnwanted(label, await this.#commands.run({ args, env, input }, label, timeoutMs), allowFailure);
  }

  /** Starts the built program as a daemon. */
  async spawnCpn(args: readonly string[], options: SpawnOptions = {}): Promise<Process> {
    return this.spawn([await builtProgram(), ...args], options);
  }

  /** Pings `address` once, or `count` times 0.2 s apart, and waits a second, or `waitMs`, for the last reply. */
  async ping(
    address: string,
    {
      count = 1,
      waitMs = 1000,
      source,
    }: { readonly count?: number; readonly waitMs?: number; readonly source?: string } = {},
  ): Promise<{ sent: number; received: number }> {
    const from = source === undefined ? [] : ['-I', source];
    const argv = ['ping', '-n', '-c', String(count), '-i', '0.2', '-W', String(waitMs / 1000), ...from, address];
    const { stdout } = await this.exec(argv, { allowFailure: true, timeoutMs: 5000 + count * 200 + waitMs });
    const match = /(\d+) packets transmitted, (\d+) received/.exec(stdout);
    return { sent: Number(match?.[1] ?? 0), received: Number(match?.[2] ?? 0) };
  }

  /** The whole state of the host as a text to compare: network, sysctls, files, processes; without what changes by itself. */
  state(): Promise<string> {
    return hostState(this);
  }

  /** The command that runs `argv` inside, for a person's shell too. */
  enter(argv: readonly string[]): string[] {
    return this.#running().enter(argv);
  }

  async #configure(link: Link, { address, gateway = [] }: PlugOptions): Promise<void> {
    await link.insert(this.#running().pid);
    const { name } = link;
    // Without duplicate address detection an IPv6 address works at once, as an IPv4 address does.
    const script = `echo 0 >/proc/sys/net/ipv6/conf/${name}/accept_dad; exec ip -batch -`;
    const batch = [
      `link set ${name} up`,
      ...[address].flat().map((each) => `address add ${each} dev ${name}`),
      ...[gateway].flat().map((each) => `route add default via ${each} dev ${name}`),
    ];
    await this.exec(['sh', '-c', script], { input: `${batch.join('\n')}\n` });
  }

  #running(): Namespace {
    if (this.#namespace === undefined) throw new Error(`${this.name}: the host isn't running`);
    return this.#namespace;
  }

  #label(argv: readonly string[]): string {
    return `${this.name}: ${argv.map((each) => each.replace(`${REPOSITORY}/dist/cpn.js`, 'cpn')).join(' ')}`;
  }
}
