import type { FileFacts, LockHolder } from '../core/doctor/check-files.ts';
import type { Kernel, Space, ToolFound } from '../core/doctor/check-host.ts';
import type { FindingSubject } from '../core/doctor/finding.ts';

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
  /** Output of network tools without keys, by file name. If a tool failed, the reason. */
  diagnostics(): Promise<ReadonlyMap<string, string>>;
}
