import { parseArgs } from 'node:util';
import type { Comparison } from './comparison.ts';
import { describeFailures, describeLoss, formatTable } from './figure-report.ts';
import { allowedLoss, compareFigures, type Figure, figuresOf, isLost, keepBetter } from './figures.ts';
import {
  addToHistory,
  describeMachine,
  readCommit,
  readRecorded,
  recordedPath,
  toRecorded,
  writeRecorded,
} from './recorded.ts';

/** What `scripts/bench check` and `record` work on. */
export interface FigureBench {
  /** How to measure each subject, by name. */
  readonly subjects: Readonly<Record<string, () => Promise<readonly Comparison[]>>>;
  /** The subjects that are measured where none is named. */
  readonly quick: readonly string[];
  /** The folder of the project, a git repository. */
  readonly folder: string;
  readonly write: (text: string) => void;
}

const options = {
  uncommitted: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

/** Runs `scripts/bench check` or `record`; returns an exit code. */
export async function benchFigures(argv: string[], bench: FigureBench): Promise<number> {
  const { values, positionals } = parseArgs({ args: argv, options, allowPositionals: true });
  const [verb, ...words] = positionals;
  const names = words.length === 0 ? bench.quick : [...new Set(words)];
  const isWrong = names.some((name) => bench.subjects[name] === undefined) || (verb === 'check' && values.uncommitted);
  if (values.help || isWrong) {
    process.stderr.write(usageOf(bench));
    return values.help ? 0 : 2;
  }
  return verb === 'check' ? check(names, words.length === 0, bench) : record(names, values.uncommitted, bench);
}

function usageOf({ subjects, quick }: FigureBench): string {
  return `usage: scripts/bench check [SUBJECT…]
       scripts/bench record [--uncommitted] [SUBJECT…]

"check" measures, and fails where a figure is more than ${allowedLoss} % above the one that was recorded last.
"record" measures and adds the figures to the history in ${recordedPath}, with the commit and the day.
Without a SUBJECT both measure those that take seconds: ${quick.join(', ')}.
Others are: ${Object.keys(subjects)
    .filter((name) => !quick.includes(name))
    .join(', ')}.

  --uncommitted  record although files are not committed
`;
}

async function check(names: readonly string[], isWhole: boolean, bench: FigureBench): Promise<number> {
  const isChecked = (subject: string) => names.includes(subject) || (isWhole && bench.subjects[subject] === undefined);
  const recorded = readRecorded(bench.folder).filter(({ subject }) => isChecked(subject));
  if (compareFigures(recorded, []).some((row) => row.recorded?.machine !== describeMachine()))
    bench.write(
      `recorded on another machine than this one (${describeMachine()}); figures may differ for that reason\n`,
    );
  let measured = await measure(names, bench);
  const worse = compareFigures(recorded, measured).filter(isLost);
  if (worse.length > 0) {
    const again = [...new Set(worse.map(({ recorded: row }) => row?.subject ?? ''))];
    bench.write(
      `more than ${allowedLoss} % worse in the first attempt, measured a second time:\n${worse.map(describeLoss).join('')}`,
    );
    measured = keepBetter(measured, await measure(again, bench));
  }
  const changes = compareFigures(recorded, measured);
  bench.write(`\n${formatTable(changes)}\n`);
  const failures = describeFailures(changes);
  bench.write(failures === '' ? `${changes.length} figures kept\n` : failures);
  return failures === '' ? 0 : 1;
}

async function record(names: readonly string[], uncommitted: boolean, bench: FigureBench): Promise<number> {
  const { commit, changed } = readCommit(bench.folder);
  if (changed !== '' && !uncommitted) {
    bench.write(`commit these changes first, or record with --uncommitted:\n${changed}\n`);
    return 1;
  }
  const measured = await measure(names, bench);
  const origin = changed === '' ? commit : `${commit} with uncommitted changes`;
  const added = measured.map((row) => toRecorded(row, origin));
  const rows = addToHistory(readRecorded(bench.folder), added);
  const inOrder = Object.keys(bench.subjects).flatMap((name) => rows.filter(({ subject }) => subject === name));
  writeRecorded(bench.folder, inOrder);
  bench.write(`${measured.length} figures recorded in ${recordedPath}; commit it\n`);
  return 0;
}

async function measure(names: readonly string[], { subjects, write }: FigureBench): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const name of names) {
    const begun = performance.now();
    figures.push(...figuresOf(name, (await subjects[name]?.()) ?? []));
    write(`measured ${name} in ${((performance.now() - begun) / 1000).toFixed(0)} s\n`);
  }
  return figures;
}
