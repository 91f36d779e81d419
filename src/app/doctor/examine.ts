import { type Finding, type FindingSubject, notExamined, problemFinding, subjects } from '../../core/doctor/finding.ts';
import { CpnError, DiskFailed, expectCpnError, NotOurs } from '../../core/errors/index.ts';
import { evaluateNetwork } from '../reconcile/evaluate-network.ts';
import { isJoined, selectStates } from '../select.ts';
import { hostChecks } from './check-host.ts';
import { mtuChecks } from './check-mtu.ts';
import { networkChecks } from './check-network.ts';
import { serviceChecks } from './check-service.ts';
import type { DoctorInputs, DoctorTools, ExaminedNetwork } from './examination.ts';

/**
 * A finding, and the interface of the network that it is about; null where it is about the host.
 */
export interface Diagnosis extends Finding {
  readonly interface: string | null;
}

/**
 * Examines this host and its networks: everything at once, in the order of `subjects`. It changes
 * nothing. A check that fails is a finding too, so that the result is useful without privileges,
 * without a network and without a control plane.
 *
 * @throws NotJoined when `network` names none of this host's
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

/** Who may not read the states is examined as a host without any. */
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

/** Messages of the catalogue end with what to do next. */
function splitRemedy(message: string): [string, string] {
  const at = message.lastIndexOf('; ');
  return at < 0 ? [message, 'correct that, and try again'] : [message.slice(0, at), message.slice(at + 2)];
}
