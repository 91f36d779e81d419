import { getSystemErrorMap } from 'node:util';
import { CpnError, quote } from './cpn-error.ts';

export class MissingPrivilege extends CpnError {
  override readonly name = 'MissingPrivilege';

  constructor(what: string, remedy: string) {
    super(`${what} needs root (CAP_NET_ADMIN); ${remedy}`, { facts: { what } });
  }
}

export class MissingTool extends CpnError {
  override readonly name = 'MissingTool';

  constructor(tool: string, remedy: string) {
    super(`${tool} was not found on this host; ${remedy}`, { facts: { tool } });
  }
}

/** The host driver does not support the operation. */
export class Unsupported extends CpnError {
  override readonly name = 'Unsupported';

  /** @param remedy an alternative, as a separate clause */
  constructor(what: string, driver: string, remedy: string) {
    super(`${what} is not supported by the host driver ${driver}; ${remedy}`, { facts: { what, driver } });
  }
}

/** cpn would change an interface, a file or a table that belongs to another program. */
export class NotOurs extends CpnError {
  override readonly name = 'NotOurs';

  constructor(what: string, target: string, remedy: string) {
    super(`${what} ${quote(target)} exists and was not made by cpn; ${remedy}`, { facts: { what, target } });
  }
}

/** A tool of the operating system failed. The message contains its exit code and stderr. */
export class CommandFailed extends CpnError {
  override readonly name = 'CommandFailed';

  constructor(command: string, exitCode: number | null, stderr: string, cause?: unknown) {
    const ending = exitCode === null ? 'did not finish' : `exited with ${exitCode}`;
    const said = stderr.trim().replaceAll('\n', '; ');
    super(`${command} ${ending}${said ? `: ${said}` : ''}`, {
      facts: { command, exitCode, stderr },
      cause,
      isRetryable: true,
    });
  }
}

/** A tool of the operating system printed unparsable output. Its next output may be complete. */
export class UnreadableOutput extends CpnError {
  override readonly name = 'UnreadableOutput';

  constructor(tool: string, problem: string) {
    super(`the output of ${tool} cannot be parsed: ${problem}`, { facts: { tool, problem }, isRetryable: true });
  }
}

/** Only the WireGuard state of the host can be observed. */
export class HostUnread extends CpnError {
  override readonly name = 'HostUnread';

  /** @param unread the reason, as in {@link Actual.unread} */
  constructor(networkInterface: string, unread: string) {
    super(
      `addresses, routes and rules of this host cannot be read: ${unread}; until then, cpn only removes peers and prefixes from ${networkInterface}`,
      { facts: { interface: networkInterface, unread }, isRetryable: true },
    );
  }
}

/** A network of this host whose interface uses a UDP port. */
export interface PortHolder {
  readonly link: string;
  readonly network: string;
}

interface PortDetails {
  readonly cause?: unknown;
  /** The flag that sets the port. */
  readonly flag?: string;
  readonly holder?: PortHolder | null;
}

/** The UDP port of an interface belongs to another program, or to another network of this host. */
export class PortTaken extends CpnError {
  override readonly name = 'PortTaken';

  constructor(
    networkInterface: string,
    port: number | null,
    { cause, flag = '--listen-port', holder = null }: PortDetails = {},
  ) {
    const { problem, remedy } = describePortTaken(port, holder, flag);
    super(`${networkInterface} cannot listen: ${problem}; ${remedy}`, {
      facts: { interface: networkInterface, port, ...(holder !== null && { holder: holder.link }) },
      cause,
      isRetryable: true,
    });
  }
}

/** `holder`: the network of this host that uses the port, or null. `choice` sets another port. */
export function describePortTaken(
  port: number | null,
  holder: PortHolder | null,
  choice: string,
): { readonly problem: string; readonly remedy: string } {
  const which = port === null ? 'its UDP port' : `UDP port ${port}`;
  const by = holder === null ? '' : ` by ${holder.link}, the interface of network ${quote(holder.network)}`;
  const release =
    holder === null
      ? 'stop its process (find it with "ss -lunp" or "wg show")'
      : `release it with "cpn leave ${holder.link}" or "cpn down ${holder.link}"`;
  return { problem: `${which} is in use${by}`, remedy: `choose another with ${choice}, or ${release}` };
}

/** The hosts file cannot be changed. The tunnel works without names. */
export class HostsFileNotUpdated extends CpnError {
  override readonly name = 'HostsFileNotUpdated';

  /** @param trouble the problem of the file, and the hint */
  constructor(networkInterface: string, trouble: string) {
    super(`the hosts file lacks the peers of ${networkInterface}: ${trouble}`, {
      facts: { interface: networkInterface },
    });
  }
}

/** What depends on the packet rules of a host: all of a closed network, or what it forwards. */
export interface DependsOnRules {
  readonly isClosed: boolean;
  readonly isConnector: boolean;
}

/** The packet rules of a host cannot be loaded. The tunnel is up without forwarding. */
export class RulesNotLoaded extends CpnError {
  override readonly name = 'RulesNotLoaded';

  constructor(networkInterface: string, stderr: string, { isClosed, isConnector }: DependsOnRules) {
    const effect = isClosed
      ? 'the network is closed, so the tunnel carries nothing until they load'
      : isConnector
        ? 'nothing is forwarded, and the routes of this connector are withdrawn until they load'
        : 'packets from the tunnel reach no container, and neighbours reach the tunnel address, until they load';
    super(`the packet rules of ${networkInterface} do not load: ${stderr}; ${effect}; check "nft list ruleset"`, {
      facts: { interface: networkInterface, stderr },
      isRetryable: true,
    });
  }
}

/** The packet filter of this host cannot map prefixes. */
export class MapsUnsupported extends CpnError {
  override readonly name = 'MapsUnsupported';

  constructor(stderr: string) {
    super(
      `nft on this host cannot map prefixes 1:1: ${stderr}; --map needs nft 0.9.5 and Linux 5.8; update them, or leave out --map`,
      { facts: { stderr } },
    );
  }
}

/** The host differs from the plan that was just applied. */
export class NotConverged extends CpnError {
  override readonly name = 'NotConverged';

  constructor(networkInterface: string, pending: readonly string[]) {
    super(`${networkInterface} still differs after the change; pending: ${pending.join(', ')}`, {
      facts: { interface: networkInterface, pending },
      isRetryable: true,
    });
  }
}

/** A resolver has not given up a file of ours, so that the state stays for another attempt. */
export class FileNotTakenBack extends CpnError {
  override readonly name = 'FileNotTakenBack';

  constructor(networkInterface: string, path: string, program: string, isThere: boolean) {
    const found = isThere ? `${path} could not be removed` : `${program} still uses ${path}, which is removed`;
    super(
      `${networkInterface} is not left completely: ${found}; correct the cause in the warning, then "cpn leave ${networkInterface}" again`,
      { facts: { interface: networkInterface, path, program } },
    );
  }
}

/** A resolver may not start again with its settings. */
export class ResolverNotRestarted extends CpnError {
  override readonly name = 'ResolverNotRestarted';

  constructor(program: string, reason: string) {
    super(reason, { facts: { program, reason } });
  }
}

/** A resolver did not take our files, and perhaps does not run with its former ones. */
export class ResolverNotRestored extends CpnError {
  override readonly name = 'ResolverNotRestored';

  constructor(cause: CpnError, failures: readonly string[]) {
    const problem = `${cause.message}; then, with its former files: ${failures.join('; ')}`;
    super(problem, { facts: { failures }, cause });
  }
}

/** A network assigns an address that would cut this host off. */
export class AddressRefused extends CpnError {
  override readonly name = 'AddressRefused';

  constructor(network: string, address: string, reason: string) {
    super(
      `network ${network} assigns this host ${address}, which ${reason}; cpn does not use this address; ask an admin of the network for another one, then join again`,
      { facts: { network, address, reason } },
    );
  }
}

/** The daemon cannot serve its metrics at the given address. */
export class MetricsFailed extends CpnError {
  override readonly name = 'MetricsFailed';

  constructor(host: string, port: number, { code = 'EIO', errno = 0 }: NodeJS.ErrnoException) {
    const reason = getSystemErrorMap().get(errno)?.[1] ?? 'unknown reason';
    super(`metrics cannot be served on ${host} port ${port}: ${reason} (${code}); choose another with --metrics`, {
      facts: { host, port, code },
      isRetryable: true,
    });
  }
}

/** The name server of this host cannot listen. The tunnel works without it. */
export class NamesNotServed extends CpnError {
  override readonly name = 'NamesNotServed';

  constructor(address: string, port: number, { code = 'EIO', errno = 0 }: NodeJS.ErrnoException) {
    const reason = getSystemErrorMap().get(errno)?.[1] ?? 'unknown reason';
    const remedy = nameServerRemedies[code] ?? 'retry later';
    super(`names cannot be served on ${address} port ${port}: ${reason} (${code}); ${remedy}`, {
      facts: { address, port, code },
      isRetryable: true,
    });
  }
}

/** Why the daemon serves no names, and what to do. */
export function describeHeldNamesPort(
  address: string,
  port: number,
): { readonly text: string; readonly remedy: string } {
  return {
    text: `another program holds ${address}:${port}`,
    remedy: `find it with "ss -lntup sport = :${port}", and stop it`,
  };
}

const nameServerRemedies: Readonly<Record<string, string>> = {
  EADDRINUSE: 'stop the program that listens there (find it with "ss -lntup")',
  EADDRNOTAVAIL: 'retry when an interface has that address',
  EACCES: 'run as root, or use a port above 1023',
};
