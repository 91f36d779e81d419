import { getSystemErrorMap } from 'node:util';
import { CpnError, quote } from './cpn-error.ts';

/** The program lacks a right on this host. */
export class MissingPrivilege extends CpnError {
  override readonly name = 'MissingPrivilege';

  constructor(what: string, remedy: string) {
    super(`${what} needs root (CAP_NET_ADMIN); ${remedy}`, { facts: { what } });
  }
}

/** A tool of the operating system is not there. */
export class MissingTool extends CpnError {
  override readonly name = 'MissingTool';

  constructor(tool: string, remedy: string) {
    super(`${tool} was not found on this host; ${remedy}`, { facts: { tool } });
  }
}

/** What is asked for cannot be done on this kind of host, whatever a person changes on it. */
export class Unsupported extends CpnError {
  override readonly name = 'Unsupported';

  /** @param remedy what does it instead, as a clause of its own */
  constructor(what: string, driver: string, remedy: string) {
    super(`${what} cannot be had on a host that is kept by ${driver} alone; ${remedy}`, { facts: { what, driver } });
  }
}

/** An interface, a file or a table that we would have to touch is somebody else's. */
export class NotOurs extends CpnError {
  override readonly name = 'NotOurs';

  constructor(what: string, target: string, remedy: string) {
    super(`${what} ${quote(target)} exists and was not made by cpn; ${remedy}`, { facts: { what, target } });
  }
}

/** A tool of the operating system failed; says which, how, and what it wrote to stderr. */
export class CommandFailed extends CpnError {
  override readonly name = 'CommandFailed';

  constructor(command: string, exitCode: number | null, stderr: string, cause?: unknown) {
    const ending = exitCode === null ? 'did not finish' : `exited with ${exitCode}`;
    const said = stderr.trim().replaceAll('\n', '; ');
    super(`${command} ${ending}${said ? `: ${said}` : ''}`, {
      facts: { command, exitCode, stderr },
      cause,
      retry: true,
    });
  }
}

/** A program of somebody else listens on the UDP port that an interface is to have. */
export class PortTaken extends CpnError {
  override readonly name = 'PortTaken';

  /** @param flag where the port was chosen */
  constructor(networkInterface: string, port: number | null, cause?: unknown, flag = '--listen-port') {
    const which = port === null ? 'its UDP port' : `UDP port ${port}`;
    super(
      `${networkInterface} cannot listen: ${which} is in use; choose another with ${flag}, or end what has it ("ss -lunp" or "wg show" names it)`,
      { facts: { interface: networkInterface, port }, cause, retry: true },
    );
  }
}

/** The hosts file is not one that we can change; the tunnel works without names. */
export class NotNamed extends CpnError {
  override readonly name = 'NotNamed';

  /** @param trouble what is wrong with the file, and what to do about it */
  constructor(networkInterface: string, trouble: string) {
    super(`the hosts file does not name the peers of ${networkInterface}: ${trouble}`, {
      facts: { interface: networkInterface },
    });
  }
}

/** Somebody else's packet rules drop what this host, a connector, is there to forward. */
export class ForwardingDropped extends CpnError {
  override readonly name = 'ForwardingDropped';

  /** @param drops a sentence each: what is dropped, by whom, and what to do about it */
  constructor(drops: readonly string[]) {
    super(drops.join('; '), { facts: { drops } });
  }
}

/** The packet rules of a host that forwards cannot be loaded; the tunnel is up, and nothing that comes out of it is forwarded. */
export class RulesNotLoaded extends CpnError {
  override readonly name = 'RulesNotLoaded';

  constructor(networkInterface: string, stderr: string, isConnector: boolean) {
    const effect = isConnector
      ? 'nothing is forwarded, and the routes of this connector are out of service until they load'
      : 'what comes out of the tunnel reaches this host alone, and no container, until they load';
    super(
      `the packet rules of ${networkInterface} do not load, so that ${effect}: ${stderr}; see what "nft list ruleset" says`,
      { facts: { interface: networkInterface, stderr }, retry: true },
    );
  }
}

/** The host does not hold what was just applied to it. */
export class NotConverged extends CpnError {
  override readonly name = 'NotConverged';

  constructor(networkInterface: string, pending: readonly string[]) {
    super(`${networkInterface} is not as it should be after the change; still pending: ${pending.join(', ')}`, {
      facts: { interface: networkInterface, pending },
      retry: true,
    });
  }
}

/** A network gives this host an address with which it would cut itself off. */
export class AddressRefused extends CpnError {
  override readonly name = 'AddressRefused';

  constructor(network: string, address: string, reason: string) {
    super(
      `network ${network} gives this host ${address}, which ${reason}; it is not taken: ask an admin of the network why, and join again`,
      { facts: { network, address, reason } },
    );
  }
}

/** The metrics of the daemon cannot be served where somebody wants them. */
export class MetricsFailed extends CpnError {
  override readonly name = 'MetricsFailed';

  constructor(host: string, port: number, { code = 'EIO', errno = 0 }: NodeJS.ErrnoException) {
    const reason = getSystemErrorMap().get(errno)?.[1] ?? 'the system says no more';
    super(`metrics cannot be served on ${host} port ${port}: ${reason} (${code}); choose another with --metrics`, {
      facts: { host, port, code },
      retry: true,
    });
  }
}
