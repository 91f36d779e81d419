import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { measurePush, type PushCase, type PushResult } from './push.ts';

const usage = `usage: scripts/bench push [--waiting N] [--changes M] [--whole] [--reconnect] [--alone] [--json FILE] [--profile DIR]

  --waiting N    connectors that wait, all in one network of as many peers (1000)
  --changes M    changes in each measurement (50)
  --whole        those who wait ask for whole maps, not for what changed
  --reconnect    those who wait make a new connection each time
  --alone        that one measurement, not how cost grows with peers and with networks
  --json FILE    the figures for a program
  --profile DIR  profiles of the control plane's processor time, one for each measurement
`;

const options = {
  waiting: { type: 'string', default: '1000' },
  changes: { type: 'string', default: '50' },
  whole: { type: 'boolean', default: false },
  reconnect: { type: 'boolean', default: false },
  alone: { type: 'boolean', default: false },
  json: { type: 'string' },
  profile: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

const columns = [
  ['networks', ({ networks }: PushResult) => `${networks}`],
  ['peers', ({ peers }: PushResult) => `${peers}`],
  ['p50 ms', ({ delay }: PushResult) => delay.p50.toFixed(1)],
  ['p95 ms', ({ delay }: PushResult) => delay.p95.toFixed(1)],
  ['p99 ms', ({ delay }: PushResult) => delay.p99.toFixed(1)],
  ['max ms', ({ delay }: PushResult) => delay.max.toFixed(1)],
  ['ack ms', ({ acknowledged }: PushResult) => acknowledged.p50.toFixed(1)],
  ['bytes/reply', ({ bytesPerReply }: PushResult) => bytesPerReply.toFixed(0)],
  ['server CPU ms/change', ({ serverCpuMsPerChange }: PushResult) => serverCpuMsPerChange.toFixed(1)],
  [
    'replies',
    ({ statuses }: PushResult) =>
      Object.entries(statuses)
        .map(([status, count]) => `${count}×${status}`)
        .join(' '),
  ],
] as const;

/** Measures how changes reach those who wait, and prints a table; returns an exit code. */
export async function benchPush(argv: string[]): Promise<number> {
  const { values } = parseArgs({ args: argv, options });
  const waiting = readCount(values.waiting);
  const changes = readCount(values.changes);
  if (values.help || waiting === null || changes === null) {
    process.stderr.write(usage);
    return values.help ? 0 : 2;
  }
  const sizes = values.alone ? [[1, waiting]] : casesOf(waiting);
  const common = { changes, deltas: !values.whole, reconnect: values.reconnect, profile: values.profile ?? null };
  if (common.profile !== null) mkdirSync(common.profile, { recursive: true });
  process.stdout.write(`${columns.map(([name]) => name).join('  ')}\n`);
  const results: PushResult[] = [];
  for (const [networks = 1, peers = 1] of sizes) {
    const load: PushCase = { networks, peers, ...common };
    const result = await measurePush(load);
    results.push(result);
    process.stdout.write(`${columns.map(([name, of]) => of(result).padStart(name.length)).join('  ')}\n`);
  }
  if (values.json !== undefined) {
    const machine = { cpus: cpus().length, model: cpus()[0]?.model ?? '', node: process.version };
    writeFileSync(values.json, `${JSON.stringify({ bench: 'push', machine, results }, null, 2)}\n`);
  }
  return 0;
}

/** All who wait in one network; then how cost grows with its peers, and with networks of ten. */
function casesOf(waiting: number): number[][] {
  const growth = [10, 100, 1000].filter((peers) => peers < waiting).map((peers) => [1, peers]);
  return [...growth, [1, waiting], [10, 10], [100, 10]];
}

function readCount(text: string): number | null {
  return /^[1-9][0-9]{0,5}$/.test(text) ? Number(text) : null;
}
