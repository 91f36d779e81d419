import type { FileFacts, LockHolder } from '../core/doctor/check-files.ts';
import type { Kernel, Space, ToolFound } from '../core/doctor/check-host.ts';
import type { ResolvedMode } from '../core/doctor/check-resolvers.ts';
import type { FindingSubject } from '../core/doctor/finding.ts';
import type { ConnectorAnswer } from '../core/forward/deadline-rules.ts';
import type { ForeignDrops, PacketPaths } from '../core/forward/foreign/foreign-drops.ts';
import type { ForwardedPackets } from '../core/forward/forwarded-packets.ts';
import type { EchoRequest } from '../core/health/path-mtu.ts';
import type { Actual, Device, SshClient, TcpConnection } from '../core/host-state/actual.ts';
import type { KernelRoute } from '../core/host-state/kernel-route.ts';
import type { PortState } from '../core/host-state/receipt.ts';
import type { DnsFailure, replyDeadline } from '../core/names/split-dns.ts';
import type { Answer, namesPort, Question } from '../core/names/zone.ts';
import type { Address, Prefix } from '../core/net/cidr.ts';
import type { Step } from '../core/reconcile/step.ts';
import type { RefusedTraffic } from '../core/rules/refused.ts';

/** Above this boundary is only data. Optional methods are Linux only: callers skip elsewhere. */
export interface Host extends Observer, Applier, Prober, Watcher, NameServing {}

/** Reads the state of the host. Changes nothing and sends nothing. */
export interface Observer {
  /** @throws CommandFailed, MissingTool */
  observe(options: ObserveOptions): Promise<Actual>;
  /** The SSH sessions to this host. Elsewhere than on Linux, only our own session. */
  sshClients(): Promise<readonly SshClient[]>;
  /** The established TCP connections of this host. Needs no privilege. */
  tcpConnections?(): readonly TcpConnection[];
  /** Only the WireGuard state. Null without the interface. @throws CommandFailed, MissingTool */
  device(link: string): Promise<Device | null>;
  links(): Promise<ReadonlySet<string>>;
  /**
   * The control socket of a WireGuard process that has this interface in another network namespace.
   * Null without such a process.
   */
  foreignSocket?(link: string): Promise<string | null>;
  /** The route of a packet. `source` is an address of this host. Only Linux uses `packet`. */
  route(destination: Address, packet?: PacketOrigin): Promise<KernelRoute>;
  /** The address from which this host sends to `destination`. Null without a route. */
  sourceAddress(destination: Address): Promise<Address | null>;
  /** True if no socket has this UDP port, over IPv4 or IPv6. */
  isPortFree(port: number): Promise<boolean>;
  /** The packets on these paths that foreign rules drop. @throws CommandFailed, MissingTool */
  foreignDrops?(link: string, paths: PacketPaths): Promise<ForeignDrops>;
  /**
   * The packets that the rules of a closed network refused. Null if these rules are not loaded.
   * @throws CommandFailed, MissingTool
   */
  readRefused?(link: string): Promise<RefusedTraffic | null>;
  /**
   * The addresses in the network to which packets left this host in the last five minutes.
   * @throws CommandFailed, MissingTool
   */
  readRecentDestinations?(link: string): Promise<readonly Address[]>;
  /** The packets that an interface sent; null without it. Starts no process. */
  countSent?(link: string): Promise<number | null>;
  /**
   * Reads whether each active firewall program (ufw, firewalld) accepts UDP to `port` from the
   * interfaces `links`. `link` is the tunnel. Slow, because it runs their tools. @throws
   * CommandFailed
   */
  portStates?(link: string, port: number, links: readonly string[]): Promise<readonly PortState[]>;
  /**
   * The programs in our network namespace that may change interfaces, routes, packet rules or
   * peers, each as `name (pid N)`. Leaves out unreadable processes. Never throws.
   */
  conflictingProcesses?(): Promise<readonly string[]>;
}

export interface Applier {
  /** @throws MissingPrivilege, MissingTool, MapsUnsupported, or Unsupported on this platform */
  check(requirements: Requirements): Promise<void>;
  /** Applies one step. @throws CommandFailed with the tool's error output @throws Unsupported */
  apply(step: Step): Promise<void>;
}

/** Sends packets to test reachability. Deadlines are in milliseconds. */
export interface Prober {
  /** The addresses of a name. Empty if the resolver has none, or exceeds the deadline. */
  resolve(name: string, deadlineMs: number): Promise<readonly Address[]>;
  /** True if a resolver replies to a query over UDP, even with an error. */
  answersQuery(resolver: Address, deadlineMs: number): Promise<boolean>;
  /**
   * Queries these DNS servers for the SOA record of a domain, from an address of this host, until
   * one answers. Resolves to the failure of them all within {@link replyDeadline}, else to null.
   */
  queryDomain(servers: readonly Address[], domain: string, source: Address): Promise<DnsFailure | null>;
  /** Sends one datagram to `address`, so that WireGuard starts a handshake. Waits for no reply. */
  triggerHandshake(address: Address): Promise<void>;
  /**
   * True if `address` accepts or refuses a TCP connection: the path is open in both directions.
   * False is weak evidence, because firewalls drop such packets.
   */
  isTcpReachable(address: Address, deadlineMs: number): Promise<boolean>;
  /** As {@link isTcpReachable}, for a connector, which may also reply that it serves nothing. */
  probeConnector(address: Address, deadlineMs: number): Promise<ConnectorAnswer>;
  /**
   * True if the port accepts TCP, not if it refuses. Without a port: if an ICMP echo has a reply.
   *
   * @throws MissingTool
   * @throws CommandFailed
   * @throws Unsupported for an echo on a platform other than Linux
   */
  probe(target: ResolvedTarget, deadlineMs: number): Promise<boolean>;
  /**
   * True if one of `count` ICMP echoes, unfragmented IP packets of `bytes`, receives a reply. The
   * deadline starts at the last echo. Packets beyond the MTU of the interface need
   * {@link raiseProbeMtu}. @throws MissingTool
   */
  probeSize?(address: Address, request: EchoRequest, deadlineMs: number): Promise<boolean>;
  /**
   * Lets {@link probeSize} send packets of up to `mtu` bytes to these addresses. Other packets keep
   * the MTU of `link`. Ends by the returned function, or with the interface. @throws CommandFailed
   */
  raiseProbeMtu?(link: string, addresses: readonly Address[], mtu: number): Promise<() => Promise<void>>;
}

/**
 * Reports changes of the host. A listener must not throw, and may receive bursts of thousands of
 * events. After a watch has started, it retries failures until it is closed.
 */
export interface Watcher {
  /**
   * Reports interfaces, addresses, routes, rules, forwarding and DNS settings. On platforms other
   * than Linux, only interfaces and addresses. @throws MissingTool
   */
  watch(listener: (event: HostEvent) => void): Promise<Watch>;
  /**
   * Reports nft tables, as events of kind `firewall`. For our tables, reports every change. For
   * other programs, reports without a link:
   * - a base chain for forwarded or incoming packets that is new or has another policy
   * - a deleted table
   *
   * @throws MissingTool
   */
  watchFirewall?(listener: (event: HostEvent) => void): Promise<Watch>;
  /**
   * Reports the configuration of WireGuard interfaces, as events of kind `device`. Leaves out
   * handshakes, counters and endpoints. The kernel has no such events, so this polls every
   * `everyMs` (9 s). The first poll ends before the promise resolves. Never throws.
   */
  watchDevices(listener: (event: HostEvent) => void, everyMs?: number): Promise<Watch>;
}

/** Serves DNS to the resolver of this host. */
export interface NameServing {
  /**
   * Serves names at an address of this host and {@link namesPort}, over UDP and TCP, to queries
   * of this host alone. `answer` may name servers, to which the query is forwarded from `source`.
   *
   * @throws NamesNotServed if the address or the port is not available
   */
  serveNames?(at: { readonly address: Address; readonly source: Address }, answer: Answerer): Promise<NameServer>;
  /**
   * Lets unbound query servers again that did not answer it. After a minute without an answer, it
   * sends a server no query for up to 15 minutes (infra-host-ttl).
   *
   * @throws CommandFailed without its remote control
   * @throws MissingTool
   */
  retryUnbound?(): Promise<void>;
}

/** Finds the answer to a question, or the servers that have it. */
export type Answerer = (question: Question) => Answer | Forwarding;

export interface Forwarding {
  /** In the order of preference. They are not believed about names of other servers. */
  readonly servers: readonly Address[];
  /** Called with the failure of them all, or with null after an answer. */
  readonly onReply?: (failure: DnsFailure | null) => void;
}

export interface NameServer {
  /** Stops at once. */
  close(): Promise<void>;
}

/** The host facts that `cpn doctor` reads in addition to an observation. Changes nothing. */
export interface Inspector {
  /** Subjects that cannot be inspected on this platform. Their methods return empty values. */
  readonly unexamined: ReadonlySet<FindingSubject>;
  /** All tools that cpn may run, installed or not. */
  tools(): Promise<readonly ToolFound[]>;
  kernel(): Promise<Kernel>;
  mayAdminister(): Promise<boolean>;
  user(): number;
  /** Running programs that may change networks, each as `name (pid N)`, and ufw if enabled. */
  managers(): Promise<readonly string[]>;
  /** The programs that are configured to ignore cpn's interfaces. */
  preparedManagers(): Promise<readonly string[]>;
  /** Null if the file does not exist or cannot be read. */
  file(path: string): Promise<FileFacts | null>;
  /** The free space of the nearest existing folder above `path`. */
  space(path: string): Promise<Space>;
  /** The process whose id is in this file. Null if the file contains no id. */
  holder(path: string): Promise<LockHolder | null>;
  /** The UDP ports with a socket in this network namespace. */
  udpPorts(): Promise<ReadonlySet<number>>;
  /** Null without systemd-resolved. */
  resolvedMode?(): Promise<ResolvedMode | null>;
  /** Output of network tools without keys, by file name. If a tool failed, the reason. */
  diagnostics(): Promise<ReadonlyMap<string, string>>;
}

export interface PacketOrigin {
  readonly source?: Address | undefined;
  readonly mark?: number | undefined;
}

/** The scope of an observation, in addition to the interface itself. */
export interface ObserveOptions {
  readonly link: string;
  /**
   * Whether to read our packet rules, which costs a process. `if-possible` if they are optional.
   */
  readonly firewall: boolean | 'if-possible';
  /** Dotted sysctl keys. */
  readonly sysctls: readonly string[];
  /** Served routes. The forwarding sysctls of the interfaces toward them are read too. */
  readonly served?: readonly Prefix[];
  /** The packets from the tunnel that the host forwards. Absent on a host that serves nothing. */
  readonly forwarding?: ForwardedPackets;
  /** Addresses of the control plane or its proxy, for {@link Underlay.paths}. */
  readonly destinations?: readonly Address[];
  /**
   * The prefixes whose routes matter, even those of other programs: of the network, served, and not
   * to be taken over. With large routing tables, other routes are neither looked up nor reported.
   */
  readonly concerns?: readonly Prefix[];
  readonly hosts: boolean;
  /** Whether to read the DNS settings of the interfaces, which costs two processes. */
  readonly dns?: boolean;
  /** A recent observation. While the interface exists, only WireGuard is read again. */
  readonly previous?: Actual | null;
  /** True if an observation with only the WireGuard state is useful: see {@link Actual.unread}. */
  readonly acceptsUnread?: boolean;
}

export interface Requirements {
  /** Reads or writes packet rules. */
  readonly firewall: boolean;
  /** Forwards packets of other hosts, as a connector. */
  readonly forwarding?: boolean;
  /** Maps prefixes of a LAN. */
  readonly maps?: boolean;
  /** Routes a default route into the tunnel. */
  readonly fullTunnel?: boolean;
}

export interface ResolvedTarget {
  readonly address: Address;
  readonly port: number | null;
}

/**
 * A hint that the host changed, never the state itself. Events may be missing: the kernel reports
 * no IPv4 route that goes with its interface or source address, and no alias of an interface that
 * is down. After a rename, events of addresses and routes may have the old name.
 */
export interface HostEvent {
  readonly kind: 'link' | 'address' | 'route' | 'rule' | 'firewall' | 'sysctl' | 'device' | 'dns';
  /** Null for rules, some routes, global forwarding, DNS settings, and {@link eventsLost}. */
  readonly link: string | null;
  readonly removed: boolean;
  /** Set for a default route of any table: the host may have moved to another network. */
  readonly isDefault?: true;
}

/** Reported after events were lost: anything may have changed. */
export const eventsLost: HostEvent = { kind: 'link', link: null, removed: false };

export interface Watch {
  /** Resolves after the watch has ended. The listener is not called after this call. */
  close(): Promise<void>;
}
