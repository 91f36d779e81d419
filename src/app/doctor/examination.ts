import type { ServiceLook } from '../../api/service.ts';
import type { Finding, Subject } from '../../core/doctor/finding.ts';
import type { CpnError } from '../../core/errors.ts';
import type { ServiceAddress } from '../../core/model.ts';
import type { Inspector } from '../../host/inspector.ts';
import type { Joined, State } from '../../store/state.ts';
import type { Folders, Listing } from '../../store/store.ts';
import type { Survey } from '../survey.ts';
import type { Tools } from '../tools.ts';

/** What a check-up works with beside the tools of every use case; made in cli/context. */
export interface DoctorTools extends Tools {
  readonly inspector: Inspector;
  readonly folders: Folders;
  /** Asks whether something answers there, and for its clock. @throws Unreachable */
  look(address: ServiceAddress, deadlineMs: number): Promise<ServiceLook>;
}

/** A network of this host, and what became of the look at it. */
export interface Case {
  readonly state: Joined;
  readonly survey: Survey | CpnError;
}

/** What is known before any check begins. */
export interface Chart {
  /** The networks that are examined, of which some may not have been joined to the end. */
  readonly states: readonly State[];
  readonly unreadable: Listing['unreadable'];
  /** Why it cannot even be told which networks there are. */
  readonly trouble: CpnError | null;
  readonly cases: readonly Case[];
}

/** A check of the host as a whole: looks, and has core/doctor judge. */
export interface HostCheck {
  /** What is said to be looked at where the look itself fails. */
  readonly subject: Subject;
  examine(tools: DoctorTools, chart: Chart): Promise<readonly Finding[]>;
}

/** A check of one network that could be looked at. */
export interface NetworkCheck {
  readonly subject: Subject;
  examine(tools: DoctorTools, survey: Survey): Promise<readonly Finding[]>;
}
