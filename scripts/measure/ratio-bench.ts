import { parseArgs } from 'node:util';
import type { Comparison } from './comparison.ts';
import { describeFailures, describeLoss, formatTable } from './ratio-report.ts';
import { allowedLoss, compareRatios, isLost, keepBetter, type Ratio, ratiosOf } from './ratios.ts';
import { describeMachine, readCommit, readRecorded, recordedPath, toRecorded, writeRecorded } from './recorded.ts';

/** What `scripts/bench check` and `record` work on. */
export interface RatioBench {
  /** How to measure each subject, by name. */
  readonly subjects: Readonly<Record<string, () => Promise<readonly Comparison[]>>>;
  /** The folder of the project, a git repository. */
  readonly folder: string;
  readonly write: (text: string) => void;
}

const options = {
  uncommitted: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

/** Runs `scripts/bench check` or `record`; returns an exit code. */
export async function benchRatios(argv: string[], bench: RatioBench): Promise<number> {
  const { values, positionals } = parseArgs({ args: argv, options, allowPositionals: true });
  const [verb, ...words] = positionals;
  const names = words.length === 0 ? Object.keys(bench.subjects) : [...new Set(words)];
  const isWrong = names.some((name) => bench.subjects[name] === undefined) || (verb === 'check' && values.uncommitted);
  if (values.help || isWrong) {
    process.stderr.write(usageOf(bench));
    return values.help ? 0 : 2;
  }
  return verb === 'check' ? check(names, words.length === 0, bench) : record(names, values.uncommitted, bench);
}

function usageOf({ subjects }: RatioBench): string {
  return `usage: scripts/bench check [SUBJECT…]
       scripts/bench record [--uncommitted] [SUBJECT…]

"check" measures the rows that take seconds, and fails where a ratio is more than ${allowedLoss} % above the recorded one.
"record" measures the same rows and writes them to ${recordedPath}, with the commit and the day.
Without a SUBJECT both measure all of them: ${Object.keys(subjects).join(', ')}.

  --uncommitted  record although files are not committed
`;
}

async function check(names: readonly string[], isWhole: boolean, bench: RatioBench): Promise<number> {
  const recorded = readRecorded(bench.folder).filter(({ subject }) => isWhole || names.includes(subject));
  if (recorded.some(({ machine }) => machine !== describeMachine()))
    bench.write(
      `recorded on another machine than this one (${describeMachine()}); ratios may differ for that reason\n`,
    );
  let measured = await measure(names, bench);
  const worse = compareRatios(recorded, measured).filter(isLost);
  if (worse.length > 0) {
    const again = [...new Set(worse.map(({ recorded: row }) => row?.subject ?? ''))];
    bench.write(
      `more than ${allowedLoss} % worse in the first attempt, measured a second time:\n${worse.map(describeLoss).join('')}`,
    );
    measured = keepBetter(measured, await measure(again, bench));
  }
  const changes = compareRatios(recorded, measured);
  bench.write(`\n${formatTable(changes)}\n`);
  const failures = describeFailures(changes);
  bench.write(failures === '' ? `${changes.length} ratios kept\n` : failures);
  return failures === '' ? 0 : 1;
}

async function record(names: readonly string[], uncommitted: boolean, bench: RatioBench): Promise<number> {
  const { commit, changed } = readCommit(bench.folder);
  if (changed !== '' && !uncommitted) {
    bench.write(`commit these changes first, or record with --uncommitted:\n${changed}\n`);
    return 1;
  }
  const measured = await measure(names, bench);
  const origin = changed === '' ? commit : `${commit} with uncommitted changes`;
  const kept = readRecorded(bench.folder).filter(({ subject }) => !names.includes(subject));
  const rows = [...kept, ...measured.map((row) => toRecorded(row, origin))];
  const inOrder = Object.keys(bench.subjects).flatMap((name) => rows.filter(({ subject }) => subject === name));
  writeRecorded(bench.folder, inOrder);
  bench.write(`${measured.length} ratios recorded in ${recordedPath}; commit it\n`);
  return 0;
}

async function measure(names: readonly string[], { subjects, write }: RatioBench): Promise<Ratio[]> {
  const ratios: Ratio[] = [];
  for (const name of names) {
    const begun = performance.now();
    ratios.push(...ratiosOf(name, (await subjects[name]?.()) ?? []));
    write(`measured ${name} in ${((performance.now() - begun) / 1000).toFixed(0)} s\n`);
  }
  return ratios;
}
