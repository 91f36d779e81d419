import { readdir, readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { printable } from '../../core/errors/index.ts';

export interface Process {
  readonly pid: number;
  readonly parent: number;
  /** The name of the program, without its folder. */
  readonly name: string;
  readonly args: readonly string[];
}

const maxNames = 20;

const batchSize = 64;

/** {@link Host.conflictingProcesses}, from proc(5). */
export async function findConflictingProcesses(): Promise<string[]> {
  const own = await namespaceOf('self');
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const processes: Process[] = [];
  for (let start = 0; start < pids.length; start += batchSize) {
    const some = await Promise.all(pids.slice(start, start + batchSize).map(readProcess));
    processes.push(...some.filter((each) => each !== null));
  }
  const named = selectConflictingProcesses(processes, process.pid);
  const near = await Promise.all(
    named.map(async (each) => own !== null && (await namespaceOf(String(each.pid))) === own),
  );
  const names = named
    .filter((_, index) => near[index])
    .flatMap(({ startedBy, ...each }) => [each, ...(startedBy ? [startedBy] : [])])
    .map(({ name, pid }) => `${printable(name)} (pid ${pid})`);
  return [...new Set(names)].slice(0, maxNames);
}

/** A process that may change networks. A tool has the process that started it in `startedBy`. */
export type ConflictingProcess = Process & { readonly startedBy?: Process };

/** Selects network daemons and tools, without `self`, its descendants, and pid 1 as a parent. */
export function selectConflictingProcesses(processes: readonly Process[], self: number): ConflictingProcess[] {
  const all = new Map(processes.map((each) => [each.pid, each]));
  return processes.flatMap((each): ConflictingProcess[] => {
    if (each.pid === self || isDescendant(each, self, all)) return [];
    if (isNetworkDaemon(each.name)) return [each];
    if (!isNetworkTool(each.name) || each.args.some((arg) => readOnlyArgs.has(arg))) return [];
    const startedBy = each.parent === 1 ? undefined : all.get(each.parent);
    return [startedBy ? { ...each, startedBy } : each];
  });
}

/** Arguments with which a tool only reads. */
const readOnlyArgs = new Set(['monitor', 'show', 'list', 'get', '-L', '-S']);

/** Bounds the search: reused pids may make the parents form a cycle. */
const maxGenerations = 64;

function isDescendant({ parent }: Process, ancestor: number, all: ReadonlyMap<number, Process>): boolean {
  for (let generation = 0, pid: number | undefined = parent; pid && generation < maxGenerations; generation += 1) {
    if (pid === ancestor) return true;
    pid = all.get(pid)?.parent;
  }
  return false;
}

/** Null for a kernel thread and for an unreadable process. */
async function readProcess(pid: string): Promise<Process | null> {
  try {
    const [status, line] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile(`/proc/${pid}/cmdline`, 'utf8'),
    ]);
    return parseProcess(status, line);
  } catch {
    return null;
  }
}

/** Parses /proc/PID/stat and cmdline (proc_pid_stat(5)). A name may have spaces and brackets. */
export function parseProcess(status: string, line: string): Process | null {
  const [, pid, comm = '', parent] = /^(\d+) \((.*)\) \S (\d+) /s.exec(status) ?? [];
  const args = line.replace(/\0$/, '').split('\0');
  if (pid === undefined || line === '') return null;
  return { pid: Number(pid), parent: Number(parent), name: fullName(comm, args), args };
}

/** TASK_COMM_LEN of the kernel's linux/sched.h, without the NUL. */
const maxCommLength = 15;

/**
 * The kernel truncates names. The arguments have the full name, unless the program changed them.
 */
function fullName(comm: string, args: readonly string[]): string {
  if (comm.length < maxCommLength) return comm;
  const complete = args.map((arg) => basename(arg)).find((name) => name.startsWith(comm));
  return complete ?? comm;
}

/**
 * Identifies the network namespace of a process by the inode of its device list. Reading `ns/net`
 * of a process with more privileges needs CAP_SYS_PTRACE.
 */
async function namespaceOf(pid: string): Promise<number | null> {
  return stat(`/proc/${pid}/net/dev`).then(
    ({ ino }) => ino,
    () => null,
  );
}

function isNetworkDaemon(name: string): boolean {
  return daemons.has(name) || wireguardDaemon.test(name);
}

function isNetworkTool(name: string): boolean {
  return tools.has(name) || /^ip6?tables/.test(name);
}

const daemons = new Set(
  [
    // Interfaces and addresses.
    'NetworkManager systemd-networkd networkd-dispatcher connmand netplan ifup ifdown ifplugd dhclient dhcpcd dhcpcd5 udhcpc',
    'wicked wickedd wickedd-dhcp4 wickedd-dhcp6 wickedd-nanny netifd pppd cloud-init waagent google_guest_agent',
    'keepalived ucarp systemd-sysctl tuned',
    // Routes.
    'bird bird6 zebra watchfrr staticd gobgpd babeld olsrd',
    // Packet rules.
    'firewalld ufw fail2ban-server shorewall ferm dockerd podman netavark libvirtd virtnetworkd lxd incusd',
    'kubelet kube-proxy calico-node cilium-agent flanneld k3s-server',
    // Tunnels.
    'netbird tailscaled innernet innernet-server netclient netmaker zerotier-one nebula',
    'mullvad-daemon nordvpnd openvpn charon charon-systemd wgd',
  ].flatMap((names) => names.split(' ')),
);

/** wg-quick, wg-easy, wg-portal, wg-gen-web and others. */
const wireguardDaemon = /^wg-[a-z]/;

const tools = new Set(['ip', 'wg', 'nft', 'ifconfig', 'route', 'sysctl', 'nmcli', 'networkctl']);
