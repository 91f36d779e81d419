import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { usualMost } from '../test/model/settings.ts';
import { runDays } from './run-fuzz/days.ts';
import { runProperties } from './run-fuzz/properties.ts';
import { most, readCount } from './run-fuzz/read-count.ts';

const usage = `usage: scripts/fuzz [--minutes N | --runs N] [--seed S] [WORD…]
       scripts/fuzz --hosts [--minutes N | --runs N] [--seed S] [--most N] [--path P] [--shrink N]

  --minutes N  run for N minutes (1), in rounds; each round has the next seed
  --runs N     execute each property N times, in one round
  --seed S     the seed of the first round, for the same values again; random by default
  WORD         properties of the files whose path contains one of the words

  --hosts      random days on lab hosts (test/model) instead of properties; each day has the next seed, and a failed day does not end the run
    --runs N     run N days
    --most N     happenings of a day, at most (${usualMost})
    --path P     where the seed begins; a failed day prints it
    --shrink N   search for N minutes for a smaller day that fails (0)
`;

const options = {
  hosts: { type: 'boolean', default: false },
  minutes: { type: 'string' },
  runs: { type: 'string' },
  seed: { type: 'string' },
  most: { type: 'string' },
  path: { type: 'string' },
  shrink: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

process.exitCode = main(process.argv.slice(2));

function main(argv: string[]): number {
  const { values, positionals } = parseArgs({ args: argv, options, allowPositionals: true });
  const minutes = readCount(values.minutes ?? '1');
  const runs = values.runs === undefined ? null : readCount(values.runs);
  const seed = values.seed === undefined ? randomInt(most) : readCount(values.seed);
  const happenings = readCount(values.most ?? `${usualMost}`);
  const shrink = readCount(values.shrink ?? '0');
  const path = values.path ?? null;
  const isForDays = [values.most, values.path, values.shrink].some((value) => value !== undefined);
  const isBad =
    (values.runs !== undefined && (runs === null || values.minutes !== undefined)) ||
    (values.hosts ? positionals.length > 0 : isForDays) ||
    !/^[0-9:]*$/.test(path ?? '');
  if (values.help || minutes === null || seed === null || !happenings || shrink === null || isBad) {
    process.stderr.write(usage);
    return values.help ? 0 : 2;
  }
  if (!values.hosts) return runProperties({ words: positionals, seed, runs, minutes });
  const built = spawnSync(process.execPath, ['scripts/build.ts'], { stdio: ['ignore', 'inherit', 'inherit'] });
  if (built.status !== 0) return 1;
  return runDays({ seed, runs, minutes, most: happenings, path, shrink });
}
