import type { ServiceProbe } from '../../api/service.ts';
import type { Finding, FindingSubject } from '../../core/doctor/finding.ts';
import type { CpnError } from '../../core/errors/index.ts';
import type { Resolved } from '../../core/names/resolved-names.ts';
import type { HttpProxy, ServiceAddress } from '../../core/net/service-address.ts';
import type { Inspector } from '../../host/host.ts';
import type { Joined, State } from '../../store/state/state.ts';
import type { Folders, StoredNetworks } from '../../store/store.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import type { Tools } from '../tools.ts';

/** Tools of `cpn doctor`, in addition to those of every use case; made in cli/context. */
export interface DoctorTools extends Tools {
  readonly inspector: Inspector;
  readonly folders: Folders;
  /** Reads the clock of the service. @throws Unreachable */
  probeService(address: ServiceAddress, deadlineMs: number, resolved: Resolved): Promise<ServiceProbe>;
  /** The proxy in this process's environment, or null. @throws InvalidValue */
  environmentProxy(service: ServiceAddress): HttpProxy | null;
}

export interface ExaminedNetwork {
  readonly state: Joined;
  readonly evaluation: Evaluation | CpnError;
}

/** The inputs of all checks. */
export interface DoctorInputs {
  /** Including incomplete joins. */
  readonly states: readonly State[];
  readonly unreadable: StoredNetworks['unreadable'];
  /** Why the list of networks cannot be read. */
  readonly failure: CpnError | null;
  readonly networks: readonly ExaminedNetwork[];
}

/** A check of the host as a whole. It collects facts; core/doctor evaluates them. */
export interface HostCheck {
  /** The subject of the finding when the check itself fails. */
  readonly subject: FindingSubject;
  examine(tools: DoctorTools, inputs: DoctorInputs): Promise<readonly Finding[]>;
}

/** A check of one network that could be evaluated. */
export interface NetworkCheck {
  readonly subject: FindingSubject;
  examine(tools: DoctorTools, evaluation: Evaluation): Promise<readonly Finding[]>;
}
