import { type Finding, notExamined, type Subject, subjects, wrong } from '../../core/doctor/finding.ts';
import { CpnError, DiskFailed, NotOurs } from '../../core/errors.ts';
import { isJoined, selectStates } from '../select.ts';
import { survey } from '../survey.ts';
import { hostChecks } from './check-host.ts';
import { keepingChecks } from './check-keeping.ts';
import { mtuChecks } from './check-mtu.ts';
import { networkChecks } from './check-network.ts';
import { serviceChecks } from './check-service.ts';
import type { Case, Chart, DoctorTools } from './examination.ts';

/** A finding, and the interface of the network that it is about; null where it is about the host. */
export interface Diagnosis extends Finding {
  readonly interface: string | null;
}

/**
 * Examines this host and its networks: everything at once, in the order of `subjects`. It changes nothing, and what cannot be looked
 * at is a finding like others, so that it tells what it can without privileges, without a network and without a control plane.
 *
 * @throws NotJoined when `network` names none of this host's
 */
export async function examine(tools: DoctorTools, network?: string): Promise<Diagnosis[]> {
  const chart = await readChart(tools, network);
  const { unexamined } = tools.inspector;
  const isExaminable = ({ subject }: { readonly subject: Subject }) => !unexamined.has(subject);
  const ofHost = [...hostChecks, ...keepingChecks]
    .filter(isExaminable)
    .map(({ subject, examine: look }) => guarded(subject, null, () => look(tools, chart)));
  const checks = [...serviceChecks, ...networkChecks, ...mtuChecks].filter(isExaminable);
  const left = [...unexamined].map((subject) => ({ ...notExamined(subject), interface: null }));
  const ofNetworks = chart.cases.flatMap(({ state, survey: seen }) => {
    const { interface: link } = state;
    if (seen instanceof CpnError) return [guarded('network', link, () => Promise.reject(seen))];
    return checks.map(({ subject, examine: look }) => guarded(subject, link, () => look(tools, seen)));
  });
  const found = [...left, ...(await Promise.all([...ofHost, ...ofNetworks])).flat()];
  const rank = ({ subject }: Finding) => subjects.indexOf(subject);
  return found.toSorted((one, other) => rank(one) - rank(other));
}

async function readChart(tools: DoctorTools, network: string | undefined): Promise<Chart> {
  const { states, unreadable, trouble } = await select(tools, network);
  const cases = states.filter(isJoined).map(async (state): Promise<Case> => {
    const seen = await survey(tools, state).catch((error) => {
      if (error instanceof CpnError) return error;
      throw error;
    });
    return { state, survey: seen };
  });
  return { states, unreadable, trouble, cases: await Promise.all(cases) };
}

/** Who may not read the states is examined as a host without any. */
async function select(tools: DoctorTools, network: string | undefined): Promise<Omit<Chart, 'cases'>> {
  try {
    return { ...(await selectStates(tools.store, network)), trouble: null };
  } catch (error) {
    if (!(error instanceof DiskFailed || error instanceof NotOurs)) throw error;
    return { states: [], unreadable: [], trouble: error };
  }
}

async function guarded(
  subject: Subject,
  link: string | null,
  look: () => Promise<readonly Finding[]>,
): Promise<Diagnosis[]> {
  try {
    return (await look()).map((finding) => ({ ...finding, interface: link }));
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    const looked = link === null ? `${subject} of this host` : `${subject} of ${link}`;
    const [found, remedy] = splitRemedy(error.message);
    return [{ ...wrong(subject, looked, found, remedy), interface: link }];
  }
}

/** Messages of the catalogue end with what to do next. */
function splitRemedy(message: string): [string, string] {
  const at = message.lastIndexOf('; ');
  return at < 0 ? [message, 'see what it says, and try again'] : [message.slice(0, at), message.slice(at + 2)];
}
