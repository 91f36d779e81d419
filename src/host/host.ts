import type { Actual, ActualPeer } from '../core/actual.ts';
import type { Address, Prefix } from '../core/cidr.ts';
import type { ForwardDrop } from '../core/forward/find-drops.ts';
import type { ForwardPath } from '../core/forward/path.ts';
import type { KernelRoute } from '../core/kernel-route.ts';
import type { EchoRequest } from '../core/path-mtu.ts';
import type { Step } from '../core/step.ts';

/** What a pass wants to know beside the interface itself. */
export interface Question {
  readonly link: string;
  /** Whether our packet rules are of interest: they cost a process to read. */
  readonly firewall: boolean | 'where this host forwards';
  /** Dotted sysctl keys to read. */
  readonly sysctls: readonly string[];
  /** Routes of which the forwarding of the interfaces that lead there is of interest too. */
  readonly served?: readonly Prefix[];
  /** Whether the hosts file is of interest. */
  readonly hosts: boolean;
}

/**
 * That something changed, and roughly what: a hint to look, never the state itself. Changes may be missing. The kernel
 * announces no IPv4 route that goes with its link or with its source address, and no alias of a link that is down; a link that is renamed goes by its new name
 * only, and later events of its addresses and routes may still bear the old one.
 */
export interface HostEvent {
  readonly kind: 'link' | 'address' | 'route' | 'rule' | 'firewall' | 'sysctl' | 'device';
  /**
   * Null where it is of no one link: rules, routes into none or several, forwarding as a whole, and
   * {@link lookAtEverything}.
   */
  readonly link: string | null;
  readonly removed: boolean;
}

/** Events may have been lost: anything may have changed. */
export const lookAtEverything: HostEvent = { kind: 'link', link: null, removed: false };

export interface Watch {
  /** Settles when nothing of it runs any more; no event comes after the call. */
  close(): Promise<void>;
}

/** What is to be done on a host beside a plain tunnel. */
export interface Needs {
  /** Packet rules are read or written. */
  readonly firewall: boolean;
  /** Packets of others are to be forwarded: the host is a connector. */
  readonly forwarding?: boolean;
  /** A default route is to lead into the tunnel. */
  readonly fullTunnel?: boolean;
}

/** A probe target whose address is known. */
export interface ProbeAt {
  readonly address: Address;
  readonly port: number | null;
}

/** The waist between the program and an operating system: everything above it is data. */
export interface Host {
  /**
   * Throws MissingPrivilege or MissingTool when this process could not configure a tunnel here, and Unsupported where no process
   * could give it what it is to have.
   */
  check(needs: Needs): Promise<void>;
  observe(question: Question): Promise<Actual>;
  /** WireGuard's own table of peers alone, for whoever follows their counters. @throws CommandFailed where there is no such interface */
  peers(link: string): Promise<readonly ActualPeer[]>;
  /** Does one step, or throws CommandFailed with the tool's own words. */
  apply(step: Step): Promise<void>;
  /** The names of all network interfaces. */
  links(): Promise<ReadonlySet<string>>;
  /** The addresses of a name; empty when there are none or no resolver answers within `deadlineMs`. */
  resolve(name: string, deadlineMs: number): Promise<readonly Address[]>;
  /**
   * What the kernel does with a packet that this host sends to `destination` without a mark, from `source` where one is given: it
   * must be an address of this host. Sends nothing.
   */
  route(destination: Address, source?: Address): Promise<KernelRoute>;
  /** The address from which this host sends to `destination`; null when there is no route. */
  sourceAddress(destination: Address): Promise<Address | null>;
  /** True where WireGuard can listen on a UDP port of this host: no other socket has it, over IPv4 or IPv6. */
  isPortFree(port: number): Promise<boolean>;
  /** Sends one datagram that needs no answer, so that WireGuard makes a handshake with the owner of `address`. */
  nudge(address: Address): Promise<void>;
  /**
   * True when something at `address` answers a TCP connection within `deadlineMs`, be it to refuse it: the way there and back is
   * open. False says little, as firewalls drop such packets.
   */
  answers(address: Address, deadlineMs: number): Promise<boolean>;
  /**
   * True when a host is there for others within `deadlineMs`: its port takes a TCP connection or, without a port, it answers an
   * ICMP echo. A refusal is false, as the service that somebody named is not there. Throws MissingTool or
   * CommandFailed where this host cannot ask.
   */
  reaches(target: ProbeAt, deadlineMs: number): Promise<boolean>;
  /**
   * True when one of `count` ICMP echoes, IP packets of `bytes` that must not be fragmented, is answered within `deadlineMs` of the
   * last. They may be larger than the MTU of their interface only while {@link widen} lets them. False where this kind of host has no such `ping`.
   * Throws MissingTool without it.
   */
  echoes(address: Address, request: EchoRequest, deadlineMs: number): Promise<boolean>;
  /**
   * Lets {@link echoes} to these addresses be as large as `mtu`, whatever the MTU of the interface `link` is; nothing else. Ends with a call of
   * what it returns, or with the interface. @throws CommandFailed
   */
  widen(link: string, addresses: readonly Address[], mtu: number): Promise<() => Promise<void>>;
  /**
   * Calls `listener`, which must not throw, for each change from the time that this resolves on, in bursts of thousands where
   * thousands of routes change. Throws MissingTool; what fails later is tried again until the watch is closed.
   */
  watch(listener: (event: HostEvent) => void): Promise<Watch>;
  /**
   * As {@link watch}, for nft tables: kind `firewall`, whatever was done to a table of ours or in it; and without a link where
   * somebody else's chain for what is forwarded came or changed its policy, or somebody else's table went. Throws
   * MissingTool; what fails later is tried again until the watch is closed.
   */
  watchFirewall(listener: (event: HostEvent) => void): Promise<Watch>;
  /**
   * Tells of WireGuard tables whose configuration changed: kind `device`. Handshakes, counters and endpoints are none of it.
   * The kernel announces nothing of this, so that it looks every `everyMs` (7 s); the first look, made before this
   * resolves, is silent. Never throws: what fails is tried again at the next look.
   */
  watchDevices(listener: (event: HostEvent) => void, everyMs?: number): Promise<Watch>;
  /**
   * Who drops packets on their ways through this host, though our own table lets them through: the packet rules of everybody else, as
   * far as nft shows them and they can be read. `link` is the interface of the tunnel.
   */
  forwardDrops(link: string, paths: readonly ForwardPath[]): Promise<readonly ForwardDrop[]>;
  /**
   * The programs that run here, in our network namespace, and are known to change interfaces, routes, packet rules or
   * WireGuard peers by themselves, each as `name (pid N)`: who may be behind a drift that comes back. Never throws; what
   * cannot be read is left out.
   */
  suspects(): Promise<readonly string[]>;
}
