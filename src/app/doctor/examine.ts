import { type Finding, type FindingSubject, notExamined, problemFinding, subjects } from '../../core/doctor/finding.ts';
import { CpnError, DiskFailed, expectCpnError, NotOurs } from '../../core/errors/index.ts';
import { evaluateNetwork } from '../reconcile/evaluate-network.ts';
import { isJoined, selectStates } from '../select.ts';
import { hostChecks } from './check-host.ts';
import { mtuChecks } from './check-mtu.ts';
import { networkChecks } from './check-network.ts';
import { serviceChecks } from './check-service.ts';
import type { DoctorInputs, DoctorTools, ExaminedNetwork } from './examination.ts';

/** A finding, and the interface of its network; null for a finding about the host. */
export interface Diagnosis extends Finding {
  readonly interface: string | null;
}

/**
 * Runs all checks of this host and its networks concurrently; orders the findings by `subjects`.
 * Changes nothing. A failed check is a finding too: the result is useful without privileges,
 * network or control plane.
 *
 * @throws NotJoined if `network` names no network of this host
 */
export async function examine(tools: DoctorTools, network?: string): Promise<Diagnosis[]> {
  const inputs = await readInputs(tools, network);
  const { unexamined } = tools.inspector;
  const isExaminable = ({ subject }: { readonly subject: FindingSubject }) => !unexamined.has(subject);
  const ofHost = hostChecks
    .filter(isExaminable)
    .map(({ subject, examine: look }) => guarded(subject, null, () => look(tools, inputs)));
  const checks = [...serviceChecks, ...networkChecks, ...mtuChecks].filter(isExaminable);
  const left = [...unexamined].map((subject) => ({ ...notExamined(subject), interface: null }));
  const ofNetworks = inputs.networks.flatMap(({ state, evaluation }) => {
    const { interface: link } = state;
    if (evaluation instanceof CpnError) return [guarded('network', link, () => Promise.reject(evaluation))];
    return checks.map(({ subject, examine: look }) => guarded(subject, link, () => look(tools, evaluation)));
  });
  const found = [...left, ...(await Promise.all([...ofHost, ...ofNetworks])).flat()];
  const rank = ({ subject }: Finding) => subjects.indexOf(subject);
  return found.toSorted((one, other) => rank(one) - rank(other));
}

async function readInputs(tools: DoctorTools, network: string | undefined): Promise<DoctorInputs> {
  const { states, unreadable, failure } = await select(tools, network);
  const cases = states.filter(isJoined).map(async (state): Promise<ExaminedNetwork> => {
    const evaluation = await evaluateNetwork(tools, state).catch(expectCpnError);
    return { state, evaluation: evaluation };
  });
  return { states, unreadable, failure, networks: await Promise.all(cases) };
}

/** If the states cannot be read, the host is examined as if it had none. */
async function select(tools: DoctorTools, network: string | undefined): Promise<Omit<DoctorInputs, 'networks'>> {
  try {
    return { ...(await selectStates(tools.store, network)), failure: null };
  } catch (error) {
    if (!(error instanceof DiskFailed || error instanceof NotOurs)) throw error;
    return { states: [], unreadable: [], failure: error };
  }
}

async function guarded(
  subject: FindingSubject,
  link: string | null,
  look: () => Promise<readonly Finding[]>,
): Promise<Diagnosis[]> {
  try {
    return (await look()).map((finding) => ({ ...finding, interface: link }));
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    const checked = link === null ? `${subject} of this host` : `${subject} of ${link}`;
    const [found, remedy] = splitRemedy(error.message);
    return [{ ...problemFinding(subject, checked, found, remedy), interface: link }];
  }
}

/** Messages of the catalogue end with "; " and the next action. */
function splitRemedy(message: string): [string, string] {
  const at = message.lastIndexOf('; ');
  return at < 0 ? [message, 'correct that, and try again'] : [message.slice(0, at), message.slice(at + 2)];
}
