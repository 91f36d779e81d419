import type { ForeignDrops, PacketPaths } from '../core/forward/foreign/foreign-drops.ts';
import type { ForwardedPackets } from '../core/forward/forwarded-packets.ts';
import type { EchoRequest } from '../core/health/path-mtu.ts';
import type { Actual, Device, SshClient } from '../core/host-state/actual.ts';
import type { KernelRoute } from '../core/host-state/kernel-route.ts';
import type { PortState } from '../core/host-state/open-port.ts';
import type { Address, Prefix } from '../core/net/cidr.ts';
import type { ConnectorAnswer } from '../core/net/connector-answer.ts';
import type { Step } from '../core/reconcile/step.ts';

/**
 * The waist between the program and an operating system: everything above it is data. Only Linux has
 * the methods with a `?`; a caller skips what needs them on other platforms.
 */
export interface Host extends Observer, Applier, Prober, Watcher {}

/** Reads the state of the host. Changes nothing and sends nothing. */
export interface Observer {
  /** @throws CommandFailed, MissingTool */
  observe(options: ObserveOptions): Promise<Actual>;
  /** The SSH sessions to this host; on other platforms than Linux only our own. */
  sshClients(): Promise<readonly SshClient[]>;
  /** What WireGuard has of an interface, and nothing else; null without it. @throws CommandFailed, MissingTool */
  device(link: string): Promise<Device | null>;
  /** The names of all network interfaces. */
  links(): Promise<ReadonlySet<string>>;
  /**
   * The route of a packet to `destination`: from `source`, an address of this host, and with `mark`
   * where they are given. Other platforms than Linux ignore both.
   */
  route(destination: Address, packet?: PacketOrigin): Promise<KernelRoute>;
  /** The address from which this host sends to `destination`; null without a route. */
  sourceAddress(destination: Address): Promise<Address | null>;
  /** True where no socket has this UDP port, over IPv4 or IPv6. */
  isPortFree(port: number): Promise<boolean>;
  /** What packet rules of other programs drop on these paths. @throws CommandFailed, MissingTool */
  foreignDrops?(link: string, paths: PacketPaths): Promise<ForeignDrops>;
  /**
   * Whether each active firewall program (ufw, firewalld) accepts UDP to `port` from the interfaces
   * `links`. Slow: it runs their tools. `link` is the tunnel. @throws CommandFailed
   */
  portStates?(link: string, port: number, links: readonly string[]): Promise<readonly PortState[]>;
  /**
   * The programs in our network namespace that are known to change interfaces, routes, packet rules
   * or peers by themselves, each as `name (pid N)`. Never throws; leaves out what it cannot read.
   */
  conflictingProcesses?(): Promise<readonly string[]>;
}

/** Changes the host. */
export interface Applier {
  /** @throws MissingPrivilege, MissingTool, or Unsupported on this platform */
  check(requirements: Requirements): Promise<void>;
  /** Applies one step. @throws CommandFailed with the tool's error output @throws Unsupported */
  apply(step: Step): Promise<void>;
}

/** Sends packets to find out what is reachable. Deadlines are in milliseconds. */
export interface Prober {
  /** The addresses of a name; empty without any, or without an answer within the deadline. */
  resolve(name: string, deadlineMs: number): Promise<readonly Address[]>;
  /** True where a resolver answers a query by UDP, with an error too. */
  answersQuery(resolver: Address, deadlineMs: number): Promise<boolean>;
  /** Sends one datagram to `address`, so that WireGuard starts a handshake. Awaits no answer. */
  triggerHandshake(address: Address): Promise<void>;
  /**
   * True where `address` accepts or refuses a TCP connection: the path is open in both directions.
   * False is weak evidence, because firewalls drop such packets.
   */
  isTcpReachable(address: Address, deadlineMs: number): Promise<boolean>;
  /** The same of a connector, which may also answer that it serves nothing. */
  probeConnector(address: Address, deadlineMs: number): Promise<ConnectorAnswer>;
  /**
   * True where the port accepts a TCP connection or, without a port, the address answers an ICMP
   * echo. A refused connection is false.
   *
   * @throws MissingTool @throws CommandFailed @throws Unsupported for an echo on another platform
   * than Linux
   */
  probe(target: ResolvedTarget, deadlineMs: number): Promise<boolean>;
  /**
   * True where one of `count` ICMP echoes, unfragmented IP packets of `bytes`, is answered; the
   * deadline begins with the last echo. Larger packets than the MTU of the interface need
   * {@link raiseProbeMtu}. @throws MissingTool
   */
  probeSize?(address: Address, request: EchoRequest, deadlineMs: number): Promise<boolean>;
  /**
   * Allows {@link probeSize} to send packets of up to `mtu` bytes to these addresses, whatever the
   * MTU of `link`; other packets keep that MTU. The returned function ends it, and so does the
   * removal of the interface. @throws CommandFailed
   */
  raiseProbeMtu?(link: string, addresses: readonly Address[], mtu: number): Promise<() => Promise<void>>;
}

/**
 * Reports changes of the host. A listener must not throw; thousands of routes give bursts of
 * thousands of events. After a watch has begun, a failure is retried until the watch is closed.
 */
export interface Watcher {
  /**
   * Interfaces, addresses, routes, rules and forwarding; interfaces and addresses alone on other
   * platforms than Linux. @throws MissingTool
   */
  watch(listener: (event: HostEvent) => void): Promise<Watch>;
  /**
   * nft tables, as events of kind `firewall`: every change of a table of ours. Without a link where
   * a base chain of another program for forwarded or incoming packets is new or has another policy,
   * or a table of another program is deleted. @throws MissingTool
   */
  watchFirewall?(listener: (event: HostEvent) => void): Promise<Watch>;
  /**
   * Configuration of WireGuard interfaces, as events of kind `device`; not handshakes, counters and
   * endpoints. The kernel has no such events: it polls every `everyMs` (9 s), for the first time
   * before this resolves. Never throws.
   */
  watchDevices(listener: (event: HostEvent) => void, everyMs?: number): Promise<Watch>;
}

/** What a route may depend on in addition to the destination. */
export interface PacketOrigin {
  readonly source?: Address | undefined;
  readonly mark?: number | undefined;
}

/** What a pass observes in addition to the interface itself. */
export interface ObserveOptions {
  readonly link: string;
  /** Whether to read our packet rules, which costs a process. A host that is no connector can do without them. */
  readonly firewall: boolean | 'if-possible';
  /** Dotted sysctl keys. */
  readonly sysctls: readonly string[];
  /** Routes; the forwarding sysctls of the interfaces that lead there are read too. */
  readonly served?: readonly Prefix[];
  /** The packets that come out of the tunnel and are to be forwarded; absent on a host that serves nothing. */
  readonly forwarding?: ForwardedPackets;
  /** Addresses of the control plane or its proxy: {@link Underlay.paths} has the path to each. */
  readonly destinations?: readonly Address[];
  /**
   * The prefixes for which a route of another program matters: what the network takes, serves or must not take away. Of a host with large
   * routing tables no others are looked up, and changes of other routes are no events.
   */
  readonly concerns?: readonly Prefix[];
  /** Whether to read the hosts file. */
  readonly hosts: boolean;
  /** What a look of a moment ago saw: as long as the interface is there, only WireGuard is read again. */
  readonly previous?: Actual | null;
  /** Whether an observation that has WireGuard's own table alone is of use: see {@link Actual.unread}. */
  readonly acceptsUnread?: boolean;
}

/** What a host needs in addition to a plain tunnel. */
export interface Requirements {
  /** Reads or writes packet rules. */
  readonly firewall: boolean;
  /** Forwards packets of other hosts: it is a connector. */
  readonly forwarding?: boolean;
  /** Routes a default route into the tunnel. */
  readonly fullTunnel?: boolean;
}

/** A probe target whose address is resolved. */
export interface ResolvedTarget {
  readonly address: Address;
  readonly port: number | null;
}

/**
 * A hint that something changed; never the state itself. Events may be missing: the kernel reports
 * no IPv4 route that is removed with its interface or its source address, and no alias of an
 * interface that is down. After a rename of an interface, events of its addresses and routes may
 * still have the former name.
 */
export interface HostEvent {
  readonly kind: 'link' | 'address' | 'route' | 'rule' | 'firewall' | 'sysctl' | 'device';
  /**
   * Null where it belongs to no single interface: rules, some routes, global forwarding, and
   * {@link eventsLost}.
   */
  readonly link: string | null;
  readonly removed: boolean;
  /** Set for a default route of any table: the host may have moved to another network. */
  readonly isDefault?: true;
}

/** Events were lost: anything may have changed. */
export const eventsLost: HostEvent = { kind: 'link', link: null, removed: false };

export interface Watch {
  /** Resolves after the watch has ended; the listener is not called after this call. */
  close(): Promise<void>;
}
