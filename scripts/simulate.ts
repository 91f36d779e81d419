import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import type { DatabaseKind } from './measure/service/database.ts';
import { type Cost, type SimulationCase, type SimulationResult, simulate } from './measure/service/simulation.ts';

const usage = `usage: scripts/simulate all [--changes N] [--idle SECONDS] [--json FILE] [--profile DIR]
       scripts/simulate sqlite|postgres [--networks N] [--peers N] [--replicas N] …

Enrols every peer over HTTP, lets all of them wait for changes, and makes changes one after another. "all" simulates 10,000 peers
in one network and 10,000 networks of three, on SQLite, on PostgreSQL, and on PostgreSQL under two processes.

  --networks N    networks (1)
  --peers N       peers of each (100)
  --replicas N    processes of the control plane on one PostgreSQL (1)
  --changes N     changes (20 with all, 10 without)
  --reports SECONDS  at the end as long as idle again, while each peer reports figures of three others so often (never)
  --idle SECONDS  how long all only wait, which is measured too (60 with all, 1 without)
  --json FILE     the figures for a program
  --profile DIR   profiles of the processor time of the control plane
`;

const options = {
  networks: { type: 'string', default: '1' },
  peers: { type: 'string', default: '100' },
  replicas: { type: 'string', default: '1' },
  changes: { type: 'string' },
  idle: { type: 'string' },
  reports: { type: 'string' },
  json: { type: 'string' },
  profile: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

const sizes = [
  { networks: 1, peers: 10_000 },
  { networks: 10_000, peers: 3 },
];
const planes = [
  { database: 'sqlite', replicas: 1 },
  { database: 'postgres', replicas: 1 },
  { database: 'postgres', replicas: 2 },
] as const;

const perEach = (amount: number, count: number) => (amount / count).toFixed(2);
const cpu = ({ planeCpuMs, databaseCpuMs }: Cost, count: number) =>
  `${perEach(planeCpuMs, count)} + ${perEach(databaseCpuMs, count)}`;
const perPeerMinute = (cost: Cost, peers: number) => cpu(cost, (peers * cost.seconds) / 60);

const columns: readonly (readonly [string, (result: SimulationResult) => string])[] = [
  ['database', ({ database, replicas }) => (replicas === 1 ? database : `${database} ×${replicas}`)],
  ['networks', ({ networks }) => `${networks}`],
  ['peers', ({ peers }) => `${peers}`],
  ['waiting', ({ waiting }) => `${waiting}`],
  ['enrolments/s', (result) => result.enrollmentsPerSecond.toFixed(0)],
  ['CPU ms/enrolment (plane + database)', ({ enrolling, enrollments }) => cpu(enrolling, enrollments)],
  ['statements/enrolment', ({ enrolling, enrollments }) => perEach(enrolling.statements, enrollments)],
  ['RSS MiB', ({ replicasHold }) => replicasHold.map(({ rssMiB }) => rssMiB.toFixed(0)).join(' + ')],
  ['files', ({ replicasHold }) => replicasHold.map(({ files }) => files).join(' + ')],
  [
    'idle CPU %',
    ({ idle }) => `${perEach(idle.planeCpuMs, idle.seconds * 10)} + ${perEach(idle.databaseCpuMs, idle.seconds * 10)}`,
  ],
  ['idle CPU ms/peer/min', ({ idle, waiting }) => perPeerMinute(idle, waiting)],
  ['the same with reports', ({ reporting, waiting }) => (reporting === null ? '–' : perPeerMinute(reporting, waiting))],
  ['p50 ms', ({ delay }) => delay.p50.toFixed(1)],
  ['p99 ms', ({ delay }) => delay.p99.toFixed(1)],
  ['max ms', ({ delay }) => delay.max.toFixed(1)],
  ['bytes/reply', ({ bytesPerReply }) => bytesPerReply.toFixed(0)],
  ['CPU ms/change', ({ changing, changes }) => cpu(changing, changes)],
  ['statements/change', ({ changing, changes }) => perEach(changing.statements, changes)],
  ['commits/change', ({ changing, changes }) => perEach(changing.commits, changes)],
  ['database MiB', ({ databaseBytes }) => (databaseBytes / 2 ** 20).toFixed(1)],
];

process.exitCode = await main(process.argv.slice(2));

/** Simulates the given cases, prints a table, and returns an exit code. */
async function main(argv: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args: argv, options, allowPositionals: true });
  const cases = positionals.length === 1 ? readCases(positionals[0] ?? '', values) : null;
  if (values.help || cases === null) {
    process.stderr.write(usage);
    return values.help ? 0 : 2;
  }
  if (values.profile !== undefined) mkdirSync(values.profile, { recursive: true });
  process.stdout.write(`| ${columns.map(([name]) => name).join(' | ')} |\n|${' --- |'.repeat(columns.length)}\n`);
  const results: SimulationResult[] = [];
  for (const each of cases) {
    const result = await simulate(each);
    results.push(result);
    process.stdout.write(`| ${columns.map(([, of]) => of(result)).join(' | ')} |\n`);
  }
  if (values.json !== undefined) {
    const memory = Math.round(totalmem() / 2 ** 30);
    const machine = { cpus: cpus().length, model: cpus()[0]?.model ?? '', memoryGiB: memory, node: process.version };
    writeFileSync(values.json, `${JSON.stringify({ simulation: true, machine, results }, null, 2)}\n`);
  }
  return 0;
}

type Asked = { readonly [Name in 'networks' | 'peers' | 'replicas']: string } & {
  readonly [Name in 'changes' | 'idle' | 'reports' | 'profile']?: string | undefined;
};

/** The given cases; null where the arguments are not valid. */
function readCases(what: string, asked: Asked): SimulationCase[] | null {
  const isAll = what === 'all';
  const kind = (['sqlite', 'postgres'] as const).find((each) => each === what);
  const [networks, peers, replicas] = [asked.networks, asked.peers, asked.replicas].map(readCount);
  const [changes, idleSeconds] = [asked.changes ?? (isAll ? '20' : '10'), asked.idle ?? (isAll ? '60' : '1')].map(
    readCount,
  );
  if (!networks || !peers || !replicas || !changes || !idleSeconds || !(isAll || kind)) return null;
  if (kind === 'sqlite' && replicas > 1) return null;
  const reportSeconds = asked.reports === undefined ? null : readCount(asked.reports);
  const common = {
    changes,
    idleSeconds,
    reportSeconds,
    profile: asked.profile ?? null,
    waitingAtMost: readFileLimit() - 1000,
  };
  if (kind) return [{ networks, peers, replicas, database: kind satisfies DatabaseKind, ...common }];
  return planes.flatMap((plane) => sizes.map((size) => ({ ...size, ...plane, ...common })));
}

function readCount(text: string): number | null {
  return /^[1-9][0-9]{0,5}$/.test(text) ? Number(text) : null;
}

/** How many files a process of this machine may have open: proc_pid_limits(5). */
function readFileLimit(): number {
  const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  return Number(soft ?? 1024);
}
