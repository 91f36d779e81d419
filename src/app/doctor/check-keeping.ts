import { type Finding, well, worthKnowing, wrong } from '../../core/doctor/finding.ts';
import { judgeDaemon, judgeFile, type Kept } from '../../core/doctor/judge-files.ts';
import { judgeSpace } from '../../core/doctor/judge-host.ts';
import { isJoined } from '../select.ts';
import type { Chart, DoctorTools, HostCheck } from './examination.ts';

/** What this host keeps: where, how safely, and who looks after it. */
export const keepingChecks: readonly HostCheck[] = [
  {
    subject: 'disk',
    async examine({ inspector, folders }) {
      const spaces = await Promise.all(Object.values(folders).map((path) => inspector.space(path)));
      return spaces.map(judgeSpace);
    },
  },
  { subject: 'files', examine: examineFiles },
  { subject: 'state', examine: examineStates },
  {
    subject: 'daemon',
    examine: async ({ inspector, folders }, { states }) => [
      judgeDaemon(await inspector.holder(`${folders.runtime}/daemon.pid`), states.length),
    ],
  },
];

async function examineFiles({ inspector, folders, store }: DoctorTools, { states, unreadable }: Chart) {
  const links = [...states, ...unreadable].map((each) => each.interface);
  const kept: Kept[] = [
    ...Object.values(folders).map((path): Kept => ({ path, kind: 'folder', isSecret: false })),
    ...links.flatMap((link): Kept[] => [
      { path: store.configPath(link), kind: 'file', isSecret: true },
      { path: `${folders.state}/${link}.json`, kind: 'file', isSecret: true },
    ]),
  ];
  const user = inspector.user();
  const findings = await Promise.all(kept.map(async (each) => judgeFile(each, await inspector.file(each.path), user)));
  return findings.filter((finding) => finding !== null);
}

async function examineStates({ store }: DoctorTools, { states, unreadable, trouble }: Chart): Promise<Finding[]> {
  if (trouble !== null) return [wrong('state', 'what is known of the networks', trouble.message, 'sudo cpn doctor')];
  const bad = unreadable.map(({ interface: link, error }) =>
    wrong('state', `what is known of ${link}`, error.message, `see that file; cpn leave ${link}, and join again`),
  );
  const damaged = [...store.damaged]
    .filter((link) => states.some((state) => state.interface === link))
    .map((link) =>
      worthKnowing(
        'state',
        `what is known of ${link}`,
        'its file is damaged, or was open to others; the previous copy of it, or what it says, is used',
        `cpn reconcile ${link}`,
      ),
    );
  const unfinished = states
    .filter((state) => !isJoined(state))
    .map(({ interface: link }) =>
      wrong(
        'state',
        `the join of ${link}`,
        'was not finished',
        `cpn join with the same key again, or cpn leave ${link}`,
      ),
    );
  const found = [...bad, ...damaged, ...unfinished];
  if (found.length > 0) return found;
  if (states.length > 0) return [well('state', 'what is known of the networks', 'can be read')];
  return [worthKnowing('state', 'what is known of the networks', 'this host has joined none', 'cpn join')];
}
