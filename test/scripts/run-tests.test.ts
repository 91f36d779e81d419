import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeCoverage } from '../../scripts/run-tests/coverage.ts';
import { endMarked } from '../../scripts/run-tests/end-marked.ts';
import { type Plan, planRun } from '../../scripts/run-tests/plan.ts';
import { statusOf } from '../../scripts/run-tests/run-plan.ts';
import config from '../../vitest.config.ts';
import { REPOSITORY } from '../lab/built-program.ts';
import { eventually } from '../lab/eventually.ts';
import { Process } from '../lab/process.ts';
import { run } from '../lab/run.ts';

const heading = "import { existsSync, writeFileSync } from 'node:fs';\nimport { expect, test } from 'vitest';\n";
const good = `${heading}test('is well', () => {});\n`;
const bad = `${heading}test('is ill', () => expect('fever').toBe('health'));\n`;
const flaky = `${heading}test('is well later', () => {
  const known = existsSync('met');
  writeFileSync('met', '');
  expect(known).toBe(true);
});\n`;
const rejecting = `${heading}test('forgets a promise', () => void Promise.reject(new Error('lost promise')));\n`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-run-tests-'));
  symlinkSync(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Given {
  readonly mostUnsteady?: number;
  readonly words?: readonly string[];
  readonly config?: string;
}

/** Runs the runner itself on a project that has these test files. */
async function runTests(files: Record<string, string>, { mostUnsteady, words = [], config = '{}' }: Given = {}) {
  const project = mkdtempSync(join(folder, 'project-'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(project, `${name}.test.mjs`), text);
  writeFileSync(join(project, 'vitest.config.mjs'), `export default { test: ${config} };\n`);
  const runner = start(project, {
    checks: [],
    parts: [[{ projects: [], words }]],
    ...(mostUnsteady !== undefined && { mostUnsteady }),
  });
  const { stdout, exitCode } = await runner.endWithin(150_000);
  const [output = '', failed = ''] = stdout.split('\nfailed:\n');
  return { exitCode, output, failed, end: stdout.trimEnd().split('\n').slice(-2) };
}

/** Starts the runner itself in a folder. */
function start(project: string, plan: Plan): Process {
  const runner = `import { runPlan } from '${join(REPOSITORY, 'scripts/run-tests/run-plan.ts')}';
process.exitCode = await runPlan(${JSON.stringify(plan)});\n`;
  writeFileSync(join(project, 'run.mjs'), runner);
  return new Process(['env', '-C', project, process.execPath, 'run.mjs'], {
    env: { ...process.env, PATH: `${join(REPOSITORY, 'node_modules/.bin')}:${process.env.PATH}` },
  });
}

/** The process id that a file of a test has, once it is there. */
function awaitPid(path: string): Promise<number> {
  const read = () => (existsSync(path) && Number(readFileSync(path, 'utf8'))) || null;
  return eventually(`a process id in ${path}`, read, { timeoutMs: 60_000 });
}

/** Zombies, which process 1 of a container may leave, have no command line. */
function isRunning(pid: number): boolean {
  return existsSync(`/proc/${pid}`) && readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== '';
}

describe.concurrent('the runner', () => {
  test('passes where every test passes', async () => {
    expect(await runTests({ good })).toMatchObject({ exitCode: 0, failed: '', end: ['', '1 passed, 0 failed'] });
  });

  test('counts a failure, a file that cannot be loaded, a failed hook and a call of process.exit', async () => {
    const { exitCode, output, failed, end } = await runTests({
      bad,
      broken: 'not a test at all',
      hook: `${heading}import { beforeAll, describe } from 'vitest';
describe('a suite', () => { beforeAll(() => { throw new Error('hooked') }); test('waits', () => {}); });\n`,
      leaves: `${heading}test('leaves', () => process.exit(0));\n`,
    });
    expect([exitCode, end]).toEqual([1, ['', '0 passed, 4 failed, 1 skipped']]);
    expect(output).toContain('a second time, alone: bad.test.mjs broken.test.mjs hook.test.mjs leaves.test.mjs\n');
    expect(failed).toMatch(/bad\.test\.mjs: is ill\n.*fever/);
    expect(failed).toMatch(/broken\.test\.mjs: the file\n.*Parse failure/);
    expect(failed).toMatch(/hook\.test\.mjs: a suite\n.*hooked/);
    expect(failed).toMatch(/leaves\.test\.mjs: leaves\n.*process\.exit/);
  });

  test('counts an unhandled rejection, and a teardown that sets the exit status, next to passed tests', async () => {
    const teardown = `export default () => () => {
  console.log('a row is missing');
  console.error('and more\\n'.repeat(20));
  process.exitCode = 1;
};\n`;
    writeFileSync(join(folder, 'teardown.mjs'), teardown);
    const config = "{ globalSetup: '../teardown.mjs' }";
    const { exitCode, failed, end } = await runTests({ good, rejecting }, { config });
    expect([exitCode, end]).toEqual([1, ['', '2 passed, 2 failed']]);
    expect(failed).toMatch(/rejecting\.test\.mjs: Unhandled Rejection.*\n.*lost promise/);
    expect(failed).toMatch(/vitest: exit status 1 after its tests\n(.*\n)*.*a row is missing/);
  });

  test('keeps the unhandled rejection of a first run where the second run passes', async () => {
    const { exitCode, failed, end } = await runTests({ rejecting, flaky });
    expect([exitCode, end]).toEqual([1, ['1 unsteady: flaky.test.mjs', '2 passed, 1 failed']]);
    expect(failed).toContain('lost promise');
  });

  test('starts the projects in the order of the configuration', async () => {
    const sequencer = `(await import('${join(REPOSITORY, 'scripts/run-tests/project-order.ts')}')).ProjectOrder`;
    const projects = "['good', 'also'].map((name) => ({ test: { name, include: [name + '.test.mjs'] } }))";
    const config = `{ maxWorkers: 1, sequence: { sequencer: ${sequencer} }, projects: ${projects} }`;
    const { output } = await runTests({ good, also: good }, { config });
    expect(output.match(/\w+\.test\.mjs/g)?.slice(0, 2)).toEqual(['good.test.mjs', 'also.test.mjs']);
  });

  test('fails with a file that passes only on its second run, where none is allowed', async () => {
    const { exitCode, output, end } = await runTests({ good, flaky }, { mostUnsteady: 0 });
    expect([exitCode, end]).toEqual([1, ['1 unsteady: flaky.test.mjs', '2 passed, 0 failed']]);
    expect(output).toMatch(/\nfailed at first:\n {2}flaky\.test\.mjs: is well later\n.*expected false to be true/);
  });

  test('counts a worker that dies, and each file that it took along', async () => {
    const dying = `${heading}test('dies', () => new Promise(() => process.kill(process.pid, 'SIGKILL')));\n`;
    const { exitCode, failed, end } = await runTests({ good, dying });
    expect([exitCode, end]).toEqual([1, ['', '1 passed, 3 failed']]);
    expect(failed).toContain('dying.test.mjs: the file\n    it did not run to its end');
    expect(failed.match(/Worker exited unexpectedly with signal SIGKILL/g)).toHaveLength(2);
  });

  test('counts a vitest that dies without a report', async () => {
    const killing = `${heading}test('kills', () => new Promise(() => process.kill(process.ppid, 'SIGKILL')));\n`;
    const { exitCode, failed, end } = await runTests({ killing });
    expect([exitCode, end]).toEqual([1, ['', '0 passed, 1 failed']]);
    expect(failed).toContain('vitest: ended by SIGKILL');
  });

  test('fails where no file has the name', async () => {
    const { exitCode, failed, end } = await runTests({ good }, { words: ['better'] });
    expect([exitCode, end]).toEqual([1, ['', '0 passed, 1 failed']]);
    expect(failed).toContain('vitest: no test ran\n    no test file has this name');
  });

  test('fails where tests were found and none ran', async () => {
    const skipped = `${heading}test.skip('later', () => {});\n`;
    const { exitCode, failed } = await runTests({ skipped });
    expect(exitCode).toBe(1);
    expect(failed).toContain('all tests of these files are skipped');
  });

  test('on SIGTERM ends all that its tests started, in sessions of their own too, and itself by the signal', async () => {
    const project = mkdtempSync(join(folder, 'project-'));
    const sides = ['left', 'right'];
    for (const side of sides) {
      const children = `import { spawn } from 'node:child_process';
${heading}test('waits for a child', () => new Promise((resolve) => {
  const script = '(sleep 300 & echo $! >orphan-${side}); sleep 300 & echo $! >child-${side}; wait';
  spawn('setsid', ['sh', '-c', script], { stdio: 'ignore' }).on('exit', resolve);
}));\n`;
      writeFileSync(join(project, `${side}.test.mjs`), children);
    }
    writeFileSync(join(project, 'vitest.config.mjs'), 'export default { test: { testTimeout: 300_000 } };\n');
    const runner = start(project, { checks: [], parts: [sides.map((side) => ({ projects: [], words: [side] }))] });
    const files = sides.flatMap((side) => [`orphan-${side}`, `child-${side}`]);
    const pids = await Promise.all(files.map((name) => awaitPid(join(project, name))));
    runner.signal('SIGTERM');
    expect(await runner.exited).toMatchObject({ signal: 'SIGTERM', stdout: expect.stringContaining('interrupted') });
    expect(pids.filter(isRunning)).toEqual([]);
  });

  test('counts teardowns that never end, though vitest then ends with status 0', async () => {
    writeFileSync(join(folder, 'endless.mjs'), 'export default () => () => new Promise(() => {});\n');
    const { exitCode, failed } = await runTests({ good }, { config: "{ globalSetup: '../endless.mjs' }" });
    expect(exitCode).toBe(1);
    expect(failed).toContain('its teardowns did not end');
  });

  test('runs nothing a second time where many files fail', async () => {
    const many = Object.fromEntries(Array.from({ length: 7 }, (_, index) => [`bad-${index}`, bad]));
    const { output, end } = await runTests(many);
    expect(end).toEqual(['', '0 passed, 7 failed']);
    expect(output).not.toContain('a second time');
  });
});

test('a process that takes no SIGTERM is killed, and no other with a longer value of the variable', async () => {
  const mark = 'CPN_TEST_REPORT=/nowhere/marked';
  const startMarked = (variable: string) =>
    new Process(['env', variable, 'sh', '-c', 'trap "" TERM; echo ready; sleep 300; sleep 300']);
  const [marked, other] = [startMarked(mark), startMarked(`${mark}-too`)];
  await Promise.all([marked, other].map((each) => each.waitForLine(/ready/)));
  await endMarked(mark, 100);
  expect(await marked.exited).toMatchObject({ signal: 'SIGKILL' });
  expect(other.pid).toBeDefined();
  await endMarked(`${mark}-too`, 0);
  expect(await other.exited).toMatchObject({ signal: 'SIGKILL' });
});

test.each([
  [0, 0, 0, 0],
  [0, 1, 0, 1],
  [0, 1, 1, 0],
  [0, 2, 1, 1],
  [0, 9, Number.POSITIVE_INFINITY, 0],
  [1, 0, Number.POSITIVE_INFINITY, 1],
])('%i failures and %i unsteady files, where %d are allowed, end with status %i', (failed, unsteady, most, status) => {
  expect(statusOf(failed, unsteady, most)).toBe(status);
});

test('a word that is a flag is refused, and no test may leave out the others', async () => {
  const { exitCode, stderr } = await run([process.execPath, join(REPOSITORY, 'scripts/run-tests.ts'), '-t', 'foo'], {
    env: process.env as Record<string, string>,
    allowFailure: true,
  });
  expect(exitCode).toBe(2);
  expect(stderr).toMatch(/^usage: scripts\/test/);
  expect(readFileSync(join(REPOSITORY, 'vitest.config.ts'), 'utf8')).toContain('allowOnly: false');
});

test('continuous integration runs every project once, the emulated machine after all with deadlines, and fails from three unsteady files on', () => {
  const { parts, checks, build, mostUnsteady } = planRun(['ci']);
  const names = (config.test?.projects ?? []).map((each) => (each as { test: { name: string } }).test.name);
  expect(
    parts
      .flat()
      .flatMap(({ projects }) => projects)
      .toSorted(),
  ).toEqual(names.toSorted());
  expect(parts.at(-1)).toMatchObject([{ projects: ['vm'] }, { projects: ['unit', 'sqlite', 'fuzz'] }]);
  expect([mostUnsteady, checks.length, build?.name]).toEqual([2, 6, 'build']);
});

test('without a word, all projects but the emulated machine run, and with "quick" the checks and the unit tests', () => {
  const [all, quick] = [planRun([]), planRun(['quick'])].map(({ parts }) =>
    parts.flat().flatMap((each) => each.projects),
  );
  const ci = planRun(['ci'])
    .parts.flat()
    .flatMap(({ projects }) => projects);
  expect(all?.toSorted()).toEqual(ci.filter((each) => each !== 'vm').toSorted());
  expect([quick, planRun(['quick']).checks]).toEqual([['unit'], planRun(['ci']).checks]);
});

test('coverage has a line for each folder of src, and one for all', () => {
  const project = join(folder, 'covered');
  mkdirSync(join(project, 'coverage'), { recursive: true });
  const count = (covered: number, total: number) => ({ covered, total });
  const file = { lines: count(1, 2), branches: count(0, 0) };
  const summary = {
    total: { lines: count(7, 8), branches: count(3, 4) },
    [join(project, 'src/store/a.ts')]: file,
    [join(project, 'src/core/b.ts')]: { lines: count(4, 4), branches: count(1, 4) },
    [join(project, 'src/store/deep/c.ts')]: { lines: count(1, 1), branches: count(1, 3) },
    [join(project, 'src/main.ts')]: file,
  };
  writeFileSync(join(project, 'coverage/coverage-summary.json'), JSON.stringify(summary));
  const rows = describeCoverage(project).split('\n').slice(1);
  expect(rows.map((row) => row.trim().split(/\s{2,}/))).toEqual([
    ['core', 'lines 100.0 % (4/4)', 'branches 25.0 % (1/4)'],
    ['src/main.ts', 'lines 50.0 % (1/2)', 'branches 100.0 % (0/0)'],
    ['store', 'lines 66.7 % (2/3)', 'branches 33.3 % (1/3)'],
    ['all', 'lines 87.5 % (7/8)', 'branches 75.0 % (3/4)'],
  ]);
});
