import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { REPOSITORY } from './built-program.ts';
import { eventually } from './eventually.ts';
import type { Host } from './host.ts';
import { addTool, exposeTools } from './stand-in-tools.ts';

/** A local resolver that reads a folder of settings. */
interface Kind {
  /** The settings that are not ours, by the path below /etc. */
  readonly settings: (server: string) => Readonly<Record<string, string>>;
  readonly start: string;
  /** The unit that is active. */
  readonly unit: string;
  /** The commands that make it read its settings again, with what they do. */
  readonly actions: Readonly<Record<string, string>>;
  /** The program of unbound that checks its settings. */
  readonly checker?: string;
}

const alive = 'kill -0 "$(cat /run/resolver.pid)" 2>/run/null';
const restart = `${alive} && kill "$(cat /run/resolver.pid)"; while ${alive}; do sleep 0.02; done; exec /run/start`;
/** As of systemd: a unit that failed stays so. */
const tryRestart = `${alive} || exit 0; ${restart}`;

/** Fetched by scripts/setup. */
const unboundFolder = join(REPOSITORY, '.cache', 'unbound');

function ofUnbound(program: string): string {
  return `env LD_LIBRARY_PATH="$(echo ${unboundFolder}/usr/lib/*-linux-gnu)" ${unboundFolder}/usr/sbin/${program}`;
}

const kinds = {
  dnsmasq: {
    settings: (server) => ({
      'dnsmasq.conf': [
        ...['listen-address=127.0.0.1', 'bind-interfaces', 'no-resolv', `server=${server}`, 'server=/second.example/#'],
        ...['stop-dns-rebind', 'rebind-domain-ok=/example/', 'bogus-priv', 'user=root', 'pid-file=/run/resolver.pid'],
        ...['conf-dir=/etc/dnsmasq.d/,*.conf', ''],
      ].join('\n'),
      'dnsmasq.d/README': '',
    }),
    start: 'dnsmasq',
    unit: 'dnsmasq',
    actions: {
      'systemctl try-restart dnsmasq.service': tryRestart,
      'systemctl restart dnsmasq.service': restart,
    },
  },
  /** Its dnsmasq, with NetworkManager's options; a stand-in for nmcli(1) restarts it. */
  NetworkManager: {
    settings: (server) => ({
      'NetworkManager/dnsmasq.d/site.conf': `server=${server}\nserver=/second.example/#\nuser=root\n`,
    }),
    start: [
      'dnsmasq --no-resolv --no-hosts --bind-interfaces --pid-file=/run/resolver.pid --listen-address=127.0.0.1',
      '--cache-size=400 --clear-on-reload --conf-file=/dev/null --proxy-dnssec',
      '--enable-dbus=org.freedesktop.NetworkManager.dnsmasq --conf-dir=/etc/NetworkManager/dnsmasq.d',
    ].join(' '),
    unit: 'NetworkManager',
    actions: { 'nmcli general reload dns-full': restart },
  },
  unbound: {
    settings: (server) => ({
      'unbound/unbound.conf': [
        ...['server:', '  interface: 127.0.0.1', '  chroot: ""', '  username: ""', '  directory: "/etc/unbound"'],
        ...['  pidfile: "/run/resolver.pid"', '  private-address: 192.168.0.0/16', '  use-syslog: no'],
        ...['  logfile: "/run/resolver.log"', 'forward-zone:', '  name: "."', `  forward-addr: ${server}`],
        ...['forward-zone:', '  name: "second.example."', `  forward-addr: ${server}`],
        ...['remote-control:', '  control-enable: yes', '  control-interface: "/run/unbound.ctl"'],
        ...['include-toplevel: "/etc/unbound/unbound.conf.d/*.conf"', ''],
      ].join('\n'),
      'unbound/unbound.conf.d/README': '',
    }),
    start: ofUnbound('unbound'),
    unit: 'unbound',
    actions: {
      // As in Debian's unit.
      'systemctl try-reload-or-restart unbound.service': `${alive} || exit 0; kill -HUP "$(cat /run/resolver.pid)"`,
      'systemctl restart unbound.service': restart,
      'systemctl try-restart unbound.service': tryRestart,
    },
    checker: 'unbound-checkconf',
  },
} as const satisfies Readonly<Record<string, Kind>>;

export type LocalResolverKind = keyof typeof kinds;

const lookUp = `
const [server, name, type] = process.argv.slice(1);
const resolver = new (require('node:dns').promises.Resolver)({ timeout: 2000, maxTimeout: 2000, tries: 1 });
resolver.setServers([server]);
const print = (reply) => console.log(JSON.stringify(reply));
resolver.resolve(name, type).then(print, ({ code }) => print([code]));
`;

/** A program at 127.0.0.1, to which the host's resolv.conf leads. A stand-in for systemctl(1) restarts it, as its unit would. */
export class LocalResolver {
  readonly #host: Host;

  /** Use {@link startLocalResolver}. */
  constructor(host: Host) {
    this.#host = host;
  }

  /** The records of a name, of `A` or another type. Without any, the error's code. */
  query(name: string, type = 'A'): Promise<string[]> {
    return queryServer(this.#host, '127.0.0.1', name, type);
  }

  /** The commands so far that made it read its settings again. */
  async reloads(): Promise<string[]> {
    return (await readFile(join(this.#host.folder, 'run/reloads'), 'utf8')).trim().split('\n').filter(Boolean);
  }

  /** As the administrator, by its unit, once the settings are old enough to count as read. */
  async restart(): Promise<void> {
    await setTimeout(untilOld);
    await this.#host.exec(['sh', '-c', restart]);
    await this.listens();
  }

  async listens(): Promise<void> {
    const list = () => this.#host.exec(['ss', '-lun']);
    await eventually('it answers', async () => (await list()).stdout.includes('127.0.0.1:53'));
  }

  /** From now on, it does not start with a file of ours. */
  async refuseFiles(isRefusing: boolean): Promise<void> {
    await writeFile(join(this.#host.folder, 'run/refuses'), isRefusing ? 'cpn-' : 'nothing');
  }
}

/** As {@link LocalResolver.query}, from any host at a server's address. */
export async function queryServer(host: Host, server: string, name: string, type = 'A'): Promise<string[]> {
  const { stdout } = await host.exec(['node', '-e', lookUp, server, name, type]);
  return JSON.parse(stdout);
}

/** Milliseconds. The dnsmasq of NetworkManager counts as started earlier by up to 500. */
const untilOld = 600;

/** In microseconds since the boot. */
const startOfProcess = `echo "$(cut -d ' ' -f 22 "/proc/$(cat /run/resolver.pid)/stat")0000"`;
/** NetworkManager itself started at the boot. */
const startOf: Readonly<Record<string, string>> = { NetworkManager: 'echo 1' };

/** A tool that shows which unit is active, and notes what makes the resolver read its settings again. */
function standIn(name: string, unit: string, actions: Kind['actions']): string {
  const cases = Object.entries(actions).map(
    ([command, action]) => `'${command}') echo "${command}" >>/run/reloads; ${action} ;;\n`,
  );
  return `#!/bin/sh
case "${name} $*" in
'systemctl show '*)
  for each; do
    case $each in *.service) ;; *) continue ;; esac
    state=inactive
    [ "$each" = ${unit}.service ] && ${alive} && state=active
    printf 'Id=%s\\nActiveState=%s\\n' "$each" "$state"
    [ $state = inactive ] || printf 'InactiveExitTimestampMonotonic=%s\\n' "$(${startOf[unit] ?? startOfProcess})"
    echo
  done ;;
'systemctl status '*)
  ${alive} || exit 3
  echo "  |-$(cat /run/resolver.pid) $(tr '\\0' ' ' <"/proc/$(cat /run/resolver.pid)/cmdline")" ;;
'systemctl reset-failed '*) ;;
${cases.join('')}*) exit 1 ;;
esac
`;
}

/** Starts it, with a server for all names. */
export async function startLocalResolver(host: Host, kind: LocalResolverKind, server: string): Promise<LocalResolver> {
  const { settings, start, unit, actions, checker }: Kind = kinds[kind];
  if (kind === 'unbound' && !existsSync(unboundFolder)) throw new Error(`no ${unboundFolder}: run scripts/setup lab`);
  for (const [path, text] of Object.entries(settings(server))) {
    const target = join(host.etcDir, path);
    await rm(target, { recursive: true, force: true });
    await mkdir(join(target, '..'), { recursive: true });
    await writeFile(target, text);
  }
  const run = join(host.folder, 'run');
  const refusing = `#!/bin/sh\nls -R /etc/dnsmasq.d /etc/NetworkManager /etc/unbound 2>/run/null | grep -q "$(cat /run/refuses)" && exit 1\n`;
  const begin = `${refusing}exec ${start}\n`;
  await writeFile(join(run, 'start'), begin, { mode: 0o755 });
  for (const name of ['reloads', 'null']) await writeFile(join(run, name), '');
  await writeFile(join(host.etcDir, 'resolv.conf'), 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n');
  for (const name of ['systemctl', 'nmcli']) await addTool(host, name, standIn(name, unit, actions));
  if (kind === 'NetworkManager') {
    await mkdir(join(run, 'NetworkManager'), { recursive: true });
    await symlink('/run/resolver.pid', join(run, 'NetworkManager/dnsmasq.pid'));
  }
  if (checker) {
    await addTool(host, checker, `${refusing}exec ${ofUnbound(checker)} "$@"\n`);
    await addTool(host, 'unbound-control', `#!/bin/sh\nexec ${ofUnbound('unbound-control')} "$@"\n`);
  }
  await exposeTools(host);
  const resolver = new LocalResolver(host);
  await resolver.refuseFiles(false);
  await setTimeout(untilOld);
  await host.exec(['/run/start']);
  await resolver.listens();
  return resolver;
}
