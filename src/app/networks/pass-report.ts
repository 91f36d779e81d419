import { CpnError, Interrupted } from '../../core/errors/index.ts';
import type { Change } from '../../core/reconcile/change.ts';
import { diffConfig, type SectionDiff } from '../../core/wg-quick/diff.ts';
import type { Joined } from '../../store/state/state.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import { selectJoined } from '../select.ts';
import type { StateTools } from '../tools.ts';

/** What a pass changed, or would change, in one network. */
export interface PassReport {
  readonly interface: string;
  readonly changes: readonly Change[];
  /** Names of peers before and after, by public key; for display, not in JSON. */
  readonly names: ReadonlyMap<string, string>;
  /** How the wg-quick file differed, without secrets; for display, not in JSON. */
  readonly fileDiff: readonly SectionDiff[];
  /** Why the newest map is missing; the pass used the last known one. */
  readonly unsynced: CpnError | null;
  /** What stopped the pass of this network; the others continued. */
  readonly failure: CpnError | null;
}

export function explainChanges(
  { membership }: Joined,
  planned: Evaluation | null,
): Pick<PassReport, 'names' | 'fileDiff'> {
  const peers = [...membership.map.peers, ...(planned?.state.membership.map.peers ?? [])];
  return {
    names: new Map(peers.map(({ publicKey, name }) => [publicKey, name])),
    fileDiff:
      planned?.savedText && planned.savedText !== planned.config ? diffConfig(planned.savedText, planned.config) : [],
  };
}

/** Runs `work` for each network, even if one fails. A signal or unexpected error stops all. */
export async function forEachNetwork(
  tools: StateTools,
  network: string | undefined,
  work: (state: Joined) => Promise<Omit<PassReport, 'interface'>>,
): Promise<PassReport[]> {
  const { states, unreadable } = await selectJoined(tools, network);
  const reports: PassReport[] = unreadable.map(({ interface: link, error }) => failed(link, error));
  for (const state of states) {
    try {
      reports.push({ interface: state.interface, ...(await work(state)) });
    } catch (error) {
      if (!(error instanceof CpnError) || error instanceof Interrupted) throw error;
      reports.push(failed(state.interface, error));
    }
  }
  return reports;
}

function failed(link: string, failure: CpnError): PassReport {
  return { interface: link, changes: [], names: new Map(), fileDiff: [], unsynced: null, failure };
}
