import { release } from 'node:os';
import { basename } from 'node:path';
import type { LockHolder } from '../../core/doctor/check-files.ts';
import type { Kernel } from '../../core/doctor/check-host.ts';
import { CpnError } from '../../core/errors/index.ts';
import type { Inspector } from '../host.ts';
import { inspectTool, readDiskSpace, readFileFacts } from '../inspections.ts';
import type { Tool } from '../process/find-tool.ts';
import { type Run, run as runHere } from '../process/run.ts';
import { findConflictingProcesses } from './conflicting-processes.ts';
import { readResolvedMode } from './dns/resolved-mode.ts';
import { isUfwEnabled } from './nft/firewall-programs.ts';
import { checkPrivilege } from './process-files.ts';
import { readIfThere } from './underlay.ts';

export function linuxInspector(run: Run = runHere): Inspector {
  return {
    unexamined: new Set(),
    tools: () => Promise.all(versionFlags.map(([tool, flag]) => inspectTool(run, tool, flag))),
    kernel: readKernel,
    mayAdminister: () =>
      checkPrivilege().then(
        () => true,
        () => false,
      ),
    user: () => process.geteuid?.() ?? 0,
    managers: async () => [...(await findConflictingProcesses()), ...((await isUfwEnabled()) ? ['ufw (on)'] : [])],
    preparedManagers,
    file: readFileFacts,
    space: readDiskSpace,
    holder: readHolder,
    udpPorts: async () =>
      parseUdpPorts(`${await readIfThere('/proc/net/udp')}\n${await readIfThere('/proc/net/udp6')}`),
    resolvedMode: () => readResolvedMode(run),
    diagnostics: () => collectDiagnostics(run),
  };
}

/** The flag with which each tool prints its version. */
const versionFlags: readonly (readonly [Tool, string])[] = [
  ['wg', '--version'],
  ['ip', '-V'],
  ['nft', '--version'],
  ['ping', '-V'],
  ['wireguard-go', '--version'],
  ['boringtun-cli', '--version'],
];

/** /sys/module has loaded and built-in modules. The lists of depmod(8) have loadable modules. */
async function readKernel(): Promise<Kernel> {
  const folder = `/lib/modules/${release()}`;
  const [loaded, tun, ...lists] = await Promise.all([
    readFileFacts('/sys/module/wireguard'),
    readFileFacts('/dev/net/tun'),
    readIfThere(`${folder}/modules.dep`),
    readIfThere(`${folder}/modules.builtin`),
  ]);
  return {
    release: release(),
    wireguard: loaded !== null || lists.some((list) => list.includes('/wireguard.ko')),
    tun: tun !== null,
  };
}

const exemptionFiles: readonly (readonly [string, readonly string[]])[] = [
  ['NetworkManager', ['/usr/lib/NetworkManager/conf.d/20-cpn.conf', '/etc/NetworkManager/conf.d/20-cpn.conf']],
  ['systemd-networkd', ['/usr/lib/systemd/network/10-cpn.network', '/etc/systemd/network/10-cpn.network']],
];

async function preparedManagers(): Promise<string[]> {
  const checks = exemptionFiles.map(async ([name, paths]) => {
    const found = await Promise.all(paths.map(readFileFacts));
    return found.some((each) => each !== null) ? [name] : [];
  });
  return (await Promise.all(checks)).flat();
}

/** The names under which cpn runs: the launcher, its script and the packaged file. */
const cpnPrograms = /^(cpn(\.js)?|main\.[jt]s|start\.cjs)$/;

/** Checks the command line too (proc_pid_cmdline(5)), because the pid may have been reused. */
async function readHolder(path: string): Promise<LockHolder | null> {
  const [, text] = /^(\d{1,10})\s*$/.exec(await readIfThere(path)) ?? [];
  if (text === undefined) return null;
  const args = (await readIfThere(`/proc/${text}/cmdline`)).split('\0').map((arg) => basename(arg));
  return { pid: Number(text), alive: args.includes('run') && args.some((arg) => cpnPrograms.test(arg)) };
}

/** Commands for the debug bundle. `wg show` without `dump` hides private and preshared keys. */
const diagnosticCommands: readonly (readonly [string, Tool, readonly string[]])[] = [
  ['wg-show.txt', 'wg', ['show']],
  ['ip-address.txt', 'ip', ['-details', 'address', 'show']],
  ['ip-route.txt', 'ip', ['route', 'show', 'table', 'all']],
  ['ip-route-6.txt', 'ip', ['-6', 'route', 'show', 'table', 'all']],
  ['ip-rule.txt', 'ip', ['rule', 'show']],
  ['ip-netconf.txt', 'ip', ['-4', 'netconf', 'show']],
  ['nft-ruleset.txt', 'nft', ['list', 'ruleset']],
  ['journal.txt', 'journalctl', ['--unit', 'cpn', '--lines', '2000', '--no-pager', '--output', 'short-iso']],
];

/** Characters kept from the end of each output. The end of the journal is the newest part. */
const maxCharacters = 2 * 1024 * 1024;

/** {@link Inspector.diagnostics} */
async function collectDiagnostics(run: Run): Promise<Map<string, string>> {
  const outputs = diagnosticCommands.map(async ([name, tool, args]): Promise<[string, string]> => {
    try {
      return [name, (await run(tool, args, { deadlineMs: 10_000 })).slice(-maxCharacters)];
    } catch (error) {
      if (!(error instanceof CpnError)) throw error;
      return [name, `not available: ${error.message}\n`];
    }
  });
  return new Map(await Promise.all(outputs));
}

/** Parses /proc/net/udp and udp6 (proc_net_udp(5)): the local port follows the colon, in hex. */
export function parseUdpPorts(text: string): Set<number> {
  const ports = text.split('\n').map((line) => /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) /.exec(line)?.[1]);
  return new Set(ports.flatMap((port) => (port === undefined ? [] : Number.parseInt(port, 16))));
}
