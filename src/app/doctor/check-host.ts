import { checkDaemon, checkFile, type KeptFile } from '../../core/doctor/check-files.ts';
import { checkKernel, checkManagers, checkPrivilege, checkSpace, checkTools } from '../../core/doctor/check-host.ts';
import { type Finding, noteFinding, okFinding, problemFinding } from '../../core/doctor/finding.ts';
import { isJoined } from '../select.ts';
import { resolvedCheck } from './check-names.ts';
import type { DoctorInputs, DoctorTools, HostCheck } from './examination.ts';

/** Checks of the system (tools, kernel, privileges, managers, disk), our files, and the daemon. */
export const hostChecks: readonly HostCheck[] = [
  {
    subject: 'tools',
    async examine({ inspector }, { states }) {
      const forwards = states.some(({ enrollment }) => enrollment.type === 'connector');
      const pings = states.some(({ options }) => options.probes.some(({ port }) => port === null));
      return checkTools(await inspector.tools(), { forwards, pings });
    },
  },
  {
    subject: 'kernel',
    examine: async ({ inspector }) => [checkKernel(await inspector.kernel(), await inspector.tools())],
  },
  {
    subject: 'privileges',
    examine: async ({ inspector }) => [checkPrivilege(await inspector.mayAdminister())],
  },
  {
    subject: 'managers',
    examine: async ({ inspector }) => checkManagers(await inspector.managers(), await inspector.preparedManagers()),
  },
  {
    subject: 'disk',
    async examine({ inspector, folders }) {
      const spaces = await Promise.all(Object.values(folders).map((path) => inspector.space(path)));
      return spaces.map(checkSpace);
    },
  },
  { subject: 'files', examine: examineFiles },
  { subject: 'state', examine: examineStates },
  resolvedCheck,
  {
    subject: 'daemon',
    examine: async ({ inspector, folders }, { states }) => [
      checkDaemon(await inspector.holder(`${folders.runtime}/daemon.pid`), states.length),
    ],
  },
];

async function examineFiles({ inspector, folders, store }: DoctorTools, { states, unreadable }: DoctorInputs) {
  const links = [...states, ...unreadable].map((each) => each.interface);
  const kept: KeptFile[] = [
    ...Object.values(folders).map((path): KeptFile => ({ path, kind: 'folder', isSecret: false })),
    ...links.flatMap((link): KeptFile[] => [
      { path: store.configPath(link), kind: 'file', isSecret: true },
      { path: `${folders.state}/${link}.json`, kind: 'file', isSecret: true },
    ]),
  ];
  const user = inspector.user();
  const findings = await Promise.all(kept.map(async (each) => checkFile(each, await inspector.file(each.path), user)));
  return findings.filter((finding) => finding !== null);
}

/** Reports networks that were left while their control planes were unreachable. */
async function examineFormer({ store }: DoctorTools): Promise<Finding[]> {
  const { memberships } = await store.readFormer();
  return memberships.map(({ interface: link, network, peer }) => {
    const remedy = 'cpn leave, once the control plane is reachable; cpn leave --forget drops its stored identity';
    return noteFinding('state', `network ${network.name}, left as ${link}`, `${peer.name} is still in it`, remedy);
  });
}

async function examineStates(tools: DoctorTools, { states, unreadable, failure }: DoctorInputs): Promise<Finding[]> {
  const { store } = tools;
  if (failure !== null) return [problemFinding('state', 'the states of networks', failure.message, 'sudo cpn doctor')];
  const bad = unreadable.map(({ interface: link, error }) =>
    problemFinding(
      'state',
      `the state of ${link}`,
      error.message,
      error.facts.code === 'EACCES' ? 'sudo cpn doctor' : `check that file; cpn leave ${link}, and join again`,
    ),
  );
  const damaged = [...store.damaged]
    .filter((link) => states.some((state) => state.interface === link))
    .map((link) =>
      noteFinding(
        'state',
        `the state of ${link}`,
        'its file is damaged, or other users could change it; cpn uses the file or its previous copy',
        `cpn reconcile ${link}`,
      ),
    );
  const unfinished = states
    .filter((state) => !isJoined(state))
    .map(({ interface: link }) =>
      problemFinding(
        'state',
        `the join of ${link}`,
        'was not finished',
        `cpn join with the same key again, or cpn leave ${link}`,
      ),
    );
  const found = [...bad, ...damaged, ...unfinished, ...(await examineFormer(tools))];
  if (found.length > 0) return found;
  if (states.length > 0) return [okFinding('state', 'the states of networks', 'can be read')];
  return [noteFinding('state', 'the states of networks', 'this host has not joined a network', 'cpn join')];
}
