import type { FileFacts, LockHolder } from '../core/doctor/check-files.ts';
import type { Kernel, Space, ToolFound } from '../core/doctor/check-host.ts';
import type { FindingSubject } from '../core/doctor/finding.ts';

/** What `cpn doctor` reads of a host in addition to what a pass observes. Changes nothing. */
export interface Inspector {
  /** Subjects that cannot be examined on this platform; the methods about them return empty values. */
  readonly unexamined: ReadonlySet<FindingSubject>;
  /** Every tool that is run, installed or not. */
  tools(): Promise<readonly ToolFound[]>;
  kernel(): Promise<Kernel>;
  mayAdminister(): Promise<boolean>;
  /** The effective user id. */
  user(): number;
  /** Running programs that change networks by themselves, each as `name (pid N)`, and ufw where it is enabled. */
  managers(): Promise<readonly string[]>;
  /** The names of those that are configured to ignore the interfaces of cpn. */
  preparedManagers(): Promise<readonly string[]>;
  /** Null where it does not exist, or cannot be read. */
  file(path: string): Promise<FileFacts | null>;
  /** Of the nearest existing folder above `path`. */
  space(path: string): Promise<Space>;
  /** The process whose id is in this file; null without one. */
  holder(path: string): Promise<LockHolder | null>;
  /** The UDP ports of this network namespace that have a socket. */
  udpPorts(): Promise<ReadonlySet<number>>;
  /** Output of network tools, without keys, by file name; or the reason why a tool failed. */
  diagnostics(): Promise<ReadonlyMap<string, string>>;
}
