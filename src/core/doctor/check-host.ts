import { type Finding, noteFinding, okFinding, problemFinding } from './finding.ts';

/** `path` is null if the tool was not found, `version` if the tool does not report one. */
export interface ToolFound {
  readonly tool: string;
  readonly path: string | null;
  readonly version: string | null;
  /** How to install it. */
  readonly remedy: string;
}

/** What this host's networks need in addition to `wg` and `ip`. */
export interface Needs {
  /** True if this host is a connector in any network. */
  readonly forwards: boolean;
  /** True if any network probes its LAN with pings. */
  readonly pings: boolean;
}

const userspace = ['wireguard-go', 'boringtun-cli'];

/** Checks each tool except a WireGuard in user space, which {@link checkKernel} checks. */
export function checkTools(tools: readonly ToolFound[], { forwards, pings }: Needs): Finding[] {
  // The tools of a kind of host do not include tools that it does not need.
  const needed = ['wg', 'ip', 'wg-quick', 'wireguard', ...(forwards ? ['nft'] : []), ...(pings ? ['ping'] : [])];
  return tools
    .filter(({ tool }) => !userspace.includes(tool))
    .map(({ tool, path, version, remedy }) => {
      if (path !== null) return okFinding('tools', tool, `${path}, ${version ?? 'version unknown'}`);
      if (needed.includes(tool)) return problemFinding('tools', tool, 'is missing', remedy);
      const use =
        tool === 'nft'
          ? 'a connector needs it, and so does a host whose containers peers use; without it, neighbours may reach the tunnel address'
          : 'without it, the MTU cannot be tested';
      return noteFinding('tools', tool, `is missing; ${use}`, remedy);
    });
}

export interface Kernel {
  readonly release: string;
  /** True if the module is loaded, or can be. */
  readonly wireguard: boolean;
  /** True if /dev/net/tun exists, which WireGuard in user space needs. */
  readonly tun: boolean;
}

/** Checks which implementation of WireGuard is available. */
export function checkKernel({ release, wireguard, tun }: Kernel, tools: readonly ToolFound[]): Finding {
  const checked = `the wireguard module of Linux ${release}`;
  if (wireguard) return okFinding('kernel', checked, 'is available');
  const stand = tools.find(({ tool, path }) => userspace.includes(tool) && path !== null);
  if (stand === undefined) {
    return problemFinding('kernel', checked, 'is missing, and so is a userspace WireGuard', 'apt install wireguard-go');
  }
  const instead = `is missing; ${stand.path} is used instead`;
  if (tun) return noteFinding('kernel', checked, instead, 'boot a kernel with the module for more speed');
  return problemFinding(
    'kernel',
    checked,
    `${instead}, but /dev/net/tun, which it needs, is missing`,
    'modprobe tun, or give the container --device /dev/net/tun',
  );
}

export function checkPrivilege(mayAdminister: boolean): Finding {
  const checked = 'CAP_NET_ADMIN';
  if (mayAdminister) return okFinding('privileges', checked, 'this process has it');
  return problemFinding(
    'privileges',
    checked,
    'this process may not configure the network, nor see all of it',
    'sudo cpn doctor, or give the container or unit NET_ADMIN',
  );
}

const remedies: readonly (readonly [RegExp, string])[] = [
  [
    /^NetworkManager /,
    "leave cpn's interfaces to cpn: a file in /etc/NetworkManager/conf.d with [device-cpn], match-device=interface-name:cpn* and managed=0, as the package does",
  ],
  [
    /^systemd-networkd /,
    'keep it from removing what others made: ManageForeignRoutes=no and ManageForeignRoutingPolicyRules=no in networkd.conf, or [Link] Unmanaged=yes for Name=cpn*',
  ],
  [/^wg-quick|^wg-[a-z]/, 'let only one of the two programs manage an interface'],
];

/** Checks for programs that change networks: `name (pid N)`. Their presence alone is no problem. */
export function checkManagers(managers: readonly string[], prepared: readonly string[]): Finding[] {
  const checked = 'programs that change network settings';
  if (managers.length === 0) return [okFinding('managers', checked, 'none is running')];
  return managers.map((name) => {
    if (prepared.some((each) => name.startsWith(`${each} `))) {
      return okFinding('managers', checked, `${name} is running, and is configured to leave cpn's interfaces alone`);
    }
    const [, remedy] = remedies.find(([pattern]) => pattern.test(name)) ?? [];
    return noteFinding(
      'managers',
      checked,
      `${name} is running`,
      remedy ?? 'if drift comes back, check that program first',
    );
  });
}

/** Free space on a file system, and the path for which it was measured. */
export interface Space {
  readonly path: string;
  readonly bytes: number;
  /** Files that can still be created; null if the file system does not count them. */
  readonly files: number | null;
}

/** A state file has some kilobytes, is kept twice, and grows with its network. */
const leastBytes = 16 * 1024 * 1024;
const leastFiles = 16;

export function checkSpace({ path, bytes, files }: Space): Finding {
  const checked = `free space at ${path}`;
  const found = `${Math.floor(bytes / 1024 / 1024)} MiB${files === null ? '' : `, ${files} files`}`;
  if (bytes < leastBytes || (files ?? leastFiles) < leastFiles) {
    return problemFinding(
      'disk',
      checked,
      `${found}: cpn may soon be unable to save its state`,
      `free some space: df -h ${path}`,
    );
  }
  return okFinding('disk', checked, found);
}
