import type { Actual } from '../core/actual.ts';
import type { Address } from '../core/cidr.ts';
import type { Step } from '../core/step.ts';

/** What a pass wants to know beside the interface itself. */
export interface Question {
  readonly link: string;
  /** Whether our packet rules are of interest: they cost a process to read. */
  readonly firewall: boolean;
  /** Dotted sysctl keys to read. */
  readonly sysctls: readonly string[];
}

/** The waist between the program and an operating system: everything above it is data. */
export interface Host {
  /** Throws MissingPrivilege or MissingTool when this process could not configure a tunnel here. */
  check(needs: { readonly firewall: boolean }): Promise<void>;
  observe(question: Question): Promise<Actual>;
  /** Does one step, or throws CommandFailed with the tool's own words. */
  apply(step: Step): Promise<void>;
  /** The names of all network interfaces. */
  links(): Promise<ReadonlySet<string>>;
  /** The addresses of a name; empty when there are none or no resolver answers within `deadlineMs`. */
  resolve(name: string, deadlineMs: number): Promise<readonly Address[]>;
  /** The address from which this host sends to `destination`; null when there is no route. */
  sourceAddress(destination: Address): Promise<Address | null>;
  /** Sends one datagram that needs no answer, so that WireGuard makes a handshake with the owner of `address`. */
  nudge(address: Address): Promise<void>;
}
