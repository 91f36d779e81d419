import { readFile } from 'node:fs/promises';
import { release } from 'node:os';
import { basename } from 'node:path';
import type { Holder } from '../../core/doctor/judge-files.ts';
import type { Kernel } from '../../core/doctor/judge-host.ts';
import { describeFile, lookForTool, measureSpace } from '../describe-file.ts';
import type { Tool } from '../find-tool.ts';
import type { Inspector } from '../inspector.ts';
import { type Run, run as runHere } from '../run.ts';
import { prints } from './prints.ts';
import { checkPrivilege } from './privilege.ts';
import { findSuspects } from './suspects.ts';

/** A check-up of this Linux host. */
export function linuxInspector(run: Run = runHere): Inspector {
  return {
    unexamined: new Set(),
    tools: () => Promise.all(versions.map(([tool, flag]) => lookForTool(run, tool, flag))),
    kernel: readKernel,
    mayAdminister: () =>
      checkPrivilege().then(
        () => true,
        () => false,
      ),
    user: () => process.geteuid?.() ?? 0,
    managers: async () => [...(await findSuspects()), ...(await findUfw())],
    preparedManagers,
    file: describeFile,
    space: measureSpace,
    holder: readHolder,
    udpPorts: async () =>
      parseUdpPorts(`${await readIfThere('/proc/net/udp')}\n${await readIfThere('/proc/net/udp6')}`),
    prints: () => prints(run),
  };
}

/** How each tool tells its version. */
const versions: readonly (readonly [Tool, string])[] = [
  ['wg', '--version'],
  ['ip', '-V'],
  ['nft', '--version'],
  ['ping', '-V'],
  ['wireguard-go', '--version'],
  ['boringtun-cli', '--version'],
];

/** Loaded or built in: /sys/module; to be loaded: what depmod(8) lists. */
async function readKernel(): Promise<Kernel> {
  const folder = `/lib/modules/${release()}`;
  const [loaded, tun, ...lists] = await Promise.all([
    describeFile('/sys/module/wireguard'),
    describeFile('/dev/net/tun'),
    readIfThere(`${folder}/modules.dep`),
    readIfThere(`${folder}/modules.builtin`),
  ]);
  return {
    release: release(),
    wireguard: loaded !== null || lists.some((list) => list.includes('/wireguard.ko')),
    tun: tun !== null,
  };
}

/** It is no program that stays, but a set of rules that its unit loads. */
async function findUfw(): Promise<string[]> {
  return /^ENABLED=yes$/m.test(await readIfThere('/etc/ufw/ufw.conf')) ? ['ufw (on)'] : [];
}

const preparations: readonly (readonly [string, readonly string[]])[] = [
  ['NetworkManager', ['/usr/lib/NetworkManager/conf.d/20-cpn.conf', '/etc/NetworkManager/conf.d/20-cpn.conf']],
  ['systemd-networkd', ['/usr/lib/systemd/network/10-cpn.network', '/etc/systemd/network/10-cpn.network']],
];

async function preparedManagers(): Promise<string[]> {
  const looks = preparations.map(async ([name, paths]) => {
    const found = await Promise.all(paths.map(describeFile));
    return found.some((each) => each !== null) ? [name] : [];
  });
  return (await Promise.all(looks)).flat();
}

/** The launcher, what it starts, and a name that a package gave it. */
const programs = /^(cpn(\.js)?|main\.[jt]s|start\.cjs)$/;

/** A process that is alive may be another one of the same number: its words tell (proc_pid_cmdline(5)). */
async function readHolder(path: string): Promise<Holder | null> {
  const [, text] = /^(\d{1,10})\s*$/.exec(await readIfThere(path)) ?? [];
  if (text === undefined) return null;
  const words = (await readIfThere(`/proc/${text}/cmdline`)).split('\0').map((word) => basename(word));
  return { pid: Number(text), alive: words.includes('run') && words.some((word) => programs.test(word)) };
}

/** Parses /proc/net/udp and udp6 (proc_net_udp(5)): the local port is what stands in hex behind the colon. */
export function parseUdpPorts(text: string): Set<number> {
  const ports = text.split('\n').map((line) => /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) /.exec(line)?.[1]);
  return new Set(ports.flatMap((port) => (port === undefined ? [] : Number.parseInt(port, 16))));
}

async function readIfThere(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}
