import type { Subject } from '../core/doctor/finding.ts';
import type { FileFacts, Holder } from '../core/doctor/judge-files.ts';
import type { Kernel, Space, ToolFound } from '../core/doctor/judge-host.ts';

/** What a check-up asks of a host beside what a pass observes. None of it changes anything. */
export interface Inspector {
  /** What cannot be looked at on this kind of host; whatever is asked about it here says nothing. */
  readonly unexamined: ReadonlySet<Subject>;
  /** Every tool that is run, whether it is there or not. */
  tools(): Promise<readonly ToolFound[]>;
  kernel(): Promise<Kernel>;
  mayAdminister(): Promise<boolean>;
  /** Whose this process is. */
  user(): number;
  /** Programs that change networks by themselves, each as `name (pid N)`, and ufw where it is on. */
  managers(): Promise<readonly string[]>;
  /** The names of those that are told to leave this program's interfaces alone. */
  preparedManagers(): Promise<readonly string[]>;
  /** Null for what is not there, or must not be seen. */
  file(path: string): Promise<FileFacts | null>;
  /** Of the nearest folder above `path` that is there. */
  space(path: string): Promise<Space>;
  /** Who wrote itself down in this file; null where nobody did. */
  holder(path: string): Promise<Holder | null>;
  /** The UDP ports of this network namespace at which somebody listens. */
  udpPorts(): Promise<ReadonlySet<number>>;
  /** What tools print of the host's network, by file name, without keys; what cannot be had says why. */
  prints(): Promise<ReadonlyMap<string, string>>;
}
