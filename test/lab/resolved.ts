/**
 * A real systemd-resolved on a simulated host, from `.cache/systemd-resolved` (see scripts/setup): it is not installed on this
 * machine, whose own resolver it would replace.
 *
 * @module
 */
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { REPOSITORY } from './built-program.ts';
import { eventually } from './eventually.ts';
import type { ExecOptions, Host } from './host.ts';
import type { Outcome, Process } from './process.ts';
import { exposeTools } from './stand-in-tools.ts';
import { labSupport } from './support.ts';

const files = join(REPOSITORY, '.cache', 'systemd-resolved');
const stub = '127.0.0.53';

/** The machine's settings of the system bus need its users and its files of services. */
const bus = `
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=/run/dbus/system_bus_socket</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
  </policy>
</busconfig>
`;

const lookUp = `
const [server, name, type, limit] = process.argv.slice(1);
const timeout = Number(limit);
const resolver = new (require('node:dns').promises.Resolver)({ timeout, maxTimeout: timeout, tries: 1 });
resolver.setServers([server]);
const print = (reply) => console.log(JSON.stringify(reply));
resolver.resolve(name, type).then(print, ({ code }) => print([code]));
`;

/** How to start systemd-resolved. */
export interface ResolvedOptions {
  /** The servers of the uplink, as the network's DHCP server names them; none by default. */
  readonly servers?: readonly string[];
  /** With a file of certificates to trust, it queries servers only over TLS. */
  readonly tlsAuthority?: string;
}

/** A running systemd-resolved, the resolver of its host. It ends with the host. */
export class Resolved {
  readonly #host: Host;
  readonly #env: Readonly<Record<string, string>>;
  #process: Process | undefined;

  /** Use {@link startResolved}. */
  constructor(host: Host, env: Readonly<Record<string, string>> = {}) {
    this.#host = host;
    this.#env = env;
  }

  /** Starts it after `stop`. */
  async start(): Promise<void> {
    const env = { ...this.#env, SYSTEMD_LOG_TARGET: 'console' };
    this.#process = this.#host.spawn([join(files, 'lib/systemd/systemd-resolved')], { env });
    await eventually('systemd-resolved runs', async () => {
      if (this.#process?.pid === undefined) throw new Error(this.#process?.output.stderr);
      return (await this.resolvectl(['status'], { allowFailure: true })).exitCode === 0;
    });
  }

  /** Stops it, as `systemctl stop` does: the settings of links stay in /run. */
  async stop(): Promise<void> {
    await this.#process?.stop();
  }

  /** Restarts it: with the settings of its links, or without. */
  async restart({ keepState = true }: { readonly keepState?: boolean } = {}): Promise<void> {
    await this.stop();
    if (!keepState) await rm(join(this.#host.folder, 'run/systemd/resolve'), { recursive: true });
    await this.start();
  }

  /** Runs resolvectl(1). */
  resolvectl(args: readonly string[], options?: ExecOptions): Promise<Outcome> {
    return this.#host.exec(['resolvectl', '--no-pager', ...args], options);
  }

  /**
   * The records of a name, of `A` or another type, from the stub. Without any, the error's code: `ENOTFOUND`, `ESERVFAIL`, or
   * `ETIMEOUT` if the stub does not reply within `timeoutMs`: by default longer than systemd-resolved waits for the first of two
   * servers, 5 s.
   */
  async query(name: string, type = 'A', { timeoutMs = 8000 }: { readonly timeoutMs?: number } = {}): Promise<string[]> {
    const { stdout } = await this.#host.exec(['node', '-e', lookUp, stub, name, type, String(timeoutMs)]);
    return JSON.parse(stdout);
  }
}

/**
 * Makes systemd-resolved the resolver of a host, and gives it a system bus. Programs on the host find resolvectl(1), and busctl(1)
 * reaches the bus. After a reboot the host needs it again.
 */
export async function startResolved(
  host: Host,
  { servers = [], tlsAuthority }: ResolvedOptions = {},
): Promise<Resolved> {
  if (!existsSync(files)) throw new Error(`no ${files}: run scripts/setup lab`);
  const run = join(host.folder, 'run');
  for (const folder of ['dbus', 'systemd/netif/links']) await mkdir(join(run, folder), { recursive: true });
  await mkdir(host.binDir, { recursive: true });
  await replace(join(host.binDir, 'resolvectl'), (path) => symlink(join(files, 'usr/bin/resolvectl'), path));
  await exposeTools(host);
  await replace(join(host.etcDir, 'resolv.conf'), (path) => symlink('/run/systemd/resolve/stub-resolv.conf', path));
  // A lab in a user namespace has no other user than root.
  const support = labSupport();
  const id = support.possible && support.how === 'root' ? 991 : 0;
  const users = { passwd: `systemd-resolve:x:${id}:${id}::/:/bin/false`, group: `systemd-resolve:x:${id}:` };
  for (const [name, line] of Object.entries(users)) {
    const others = readFileSync(`/etc/${name}`, 'utf8').replace(/^systemd-resolve:.*\n/m, '');
    await replace(join(host.etcDir, name), (path) => writeFile(path, `${others}${line}\n`));
  }
  await writeFile(join(run, 'dbus/lab.conf'), bus.trimStart());
  const daemon = host.spawn(['dbus-daemon', '--nofork', '--print-address', '--config-file=/run/dbus/lab.conf']);
  await daemon.waitForLine(/^unix:/);
  const index = (await host.exec(['cat', `/sys/class/net/${host.uplink.name}/ifindex`])).stdout.trim();
  // As systemd-networkd publishes what a DHCP server offers.
  const link = `ADMIN_STATE=configured\nOPER_STATE=routable\nDNS=${servers.join(' ')}\n`;
  await writeFile(join(run, 'systemd/netif/links', index), link);
  const settings = join(run, 'systemd/resolved.conf.d/lab.conf');
  await mkdir(dirname(settings), { recursive: true });
  await writeFile(settings, tlsAuthority === undefined ? '' : '[Resolve]\nDNSOverTLS=yes\n');
  const resolved = new Resolved(host, tlsAuthority === undefined ? {} : { SSL_CERT_FILE: tlsAuthority });
  await resolved.start();
  return resolved;
}

async function replace(path: string, make: (path: string) => Promise<void>): Promise<void> {
  await rm(path, { force: true });
  await make(path);
}
