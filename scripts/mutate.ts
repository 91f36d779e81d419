/** Runs Stryker over the files of a change; scripts/mutate calls it once the packages are there. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { chooseFiles } from './run-mutate/choose-files.ts';
import { chooseTests } from './run-mutate/choose-tests.ts';
import { install } from './run-mutate/install.ts';
import { cache, settingsOf, TESTS_VARIABLE } from './run-mutate/settings.ts';

const usage = `usage: scripts/mutate [--dry-run] [PATH…]

  PATH       files or folders of src; by default the files of src that differ from origin/main, or else from the last tag
  --dry-run  only list the files, and count the test files

Mutates these files one place at a time, runs the tests of the folders that mirror theirs, and lists the mutants that survive.
The results stay in .cache/mutate: a second run repeats only what has changed. The exit code is 1 if a mutant survives.
`;

try {
  process.exitCode = main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`mutate: ${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 2;
}

function main(args: readonly string[]): number {
  const options = {
    'dry-run': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  } as const;
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  const files = chooseFiles(process.cwd(), positionals);
  if (files.length === 0) {
    process.stderr.write('mutate: no file of src to mutate; name files or folders of src\n');
    return positionals.length > 0 ? 2 : 0;
  }
  const tests = chooseTests(process.cwd(), files);
  process.stdout.write(`${files.join('\n')}\n${tests.length} test files\n`);
  if (values['dry-run']) return 0;
  const stryker = install();
  mkdirSync(cache, { recursive: true });
  const [settings, list] = [join(cache, 'stryker.json'), join(cache, 'tests.json')];
  writeFileSync(list, JSON.stringify(tests));
  writeFileSync(settings, JSON.stringify(settingsOf(files), null, 2));
  const { status } = spawnSync('nice', ['-n', '5', process.execPath, stryker, 'run', settings], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, [TESTS_VARIABLE]: list },
  });
  return status ?? 1;
}
