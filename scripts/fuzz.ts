import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { variables } from '../test/fuzz/settings.ts';
import { describeTally, type Tally } from '../test/fuzz/tally.ts';

const usage = `usage: scripts/fuzz [--minutes N | --runs N] [--seed S] [WORD…]

  --minutes N  go on for so long (1), in rounds, of which each has the next seed
  --runs N     execute each property so often, in one round
  --seed S     the seed of the first round, for the same values again; any one, unless told
  WORD         properties of the files whose path contains one of the words
`;

const options = {
  minutes: { type: 'string' },
  runs: { type: 'string' },
  seed: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

const most = 2 ** 31 - 1;

process.exitCode = main(process.argv.slice(2));

function main(argv: string[]): number {
  const { values, positionals } = parseArgs({ args: argv, options, allowPositionals: true });
  const minutes = readCount(values.minutes ?? '1');
  const runs = values.runs === undefined ? null : readCount(values.runs);
  const seed = values.seed === undefined ? randomInt(most) : readCount(values.seed);
  const isBad =
    (values.runs !== undefined && runs === null) || (values.runs !== undefined && values.minutes !== undefined);
  if (values.help || minutes === null || seed === null || isBad) {
    process.stderr.write(usage);
    return values.help ? 0 : 2;
  }
  const until = runs === null ? Date.now() + minutes * 60_000 : null;
  const folder = mkdtempSync(join(tmpdir(), 'cpn-fuzz-'));
  try {
    const total = join(folder, 'total');
    let status = 0;
    let last = seed;
    for (let round = seed; status === 0 && (round === seed || (until !== null && Date.now() < until)); round += 1) {
      last = round;
      status = runRound(positionals, { seed: round, runs, until, total });
    }
    const rounds = readRounds(total);
    const executions = rounds.reduce((sum, each) => sum + each.executions, 0);
    const sum = { executions, properties: Math.max(0, ...rounds.map(({ properties }) => properties)) };
    if (last > seed) process.stdout.write(`\n${describeTally(sum, `${seed} to ${last}`)}\n`);
    return status;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

interface Round {
  readonly seed: number;
  readonly runs: number | null;
  readonly until: number | null;
  readonly total: string;
}

function runRound(words: readonly string[], { seed, runs, until, total }: Round): number {
  const env = {
    ...process.env,
    [variables.seed]: String(seed),
    [variables.total]: total,
    ...(runs !== null && { [variables.runs]: String(runs) }),
    ...(until !== null && { [variables.until]: String(until) }),
  };
  const { status } = spawnSync('vitest', ['run', '--project', 'fuzz', ...words], {
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  return status ?? 1;
}

function readRounds(path: string): Tally[] {
  try {
    const lines = readFileSync(path, 'utf8').split('\n');
    return lines.filter((line) => line !== '').map((line): Tally => JSON.parse(line));
  } catch {
    return [];
  }
}

function readCount(text: string): number | null {
  return /^(0|[1-9][0-9]{0,9})$/.test(text) && Number(text) <= most ? Number(text) : null;
}
