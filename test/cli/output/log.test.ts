import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { lineForJournal, lineForPeople } from '../../../src/cli/output/log-line.ts';

const sources = join(import.meta.dirname, '../../../src/cli');
/** Logs a line at each level, and one with what a terminal would obey. */
const program = `
import { openLog } from '${sources}/output/log.ts';
import { Input } from '${sources}/input/input.ts';
const log = openLog(new Input({}, {}, process.env), 'info');
for (const level of ['trace', 'debug', 'info', 'warn', 'error', 'fatal']) log[level]({ interface: 'cpn0' }, level + ' logged');
log.warn({ name: '\\u009b31m\\u202e a', list: ['a b'] }, 'hostile');
`;

/** What it writes with stderr as a file, and with the environment made for that file. */
function writeTo(environment: (file: string) => Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'cpn-log-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'journal');
  const file = openSync(path, 'w');
  const { dev, ino } = statSync(path, { bigint: true });
  const env = { PATH: process.env.PATH, ...environment(`${dev}:${ino}`) };
  const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'ignore', file],
    env,
  });
  closeSync(file);
  expect(status).toBe(0);
  return readFileSync(path, 'utf8');
}

const lines = (text: string) => text.trimEnd().split('\n');

describe('a log', () => {
  it('bears the priority of each line where the journal reads it, behind which the line is JSON', () => {
    const logged = lines(writeTo((file) => ({ JOURNAL_STREAM: file, CPN_LOG_LEVEL: 'trace' })));
    expect(logged.map((line) => line.slice(0, 3))).toEqual(['<7>', '<7>', '<6>', '<4>', '<3>', '<2>', '<4>']);
    expect(logged.map((line) => JSON.parse(line.slice(3)).msg).slice(0, 3)).toEqual([
      'trace logged',
      'debug logged',
      'info logged',
    ]);
  });

  it('is JSON alone where stderr leads elsewhere than to the journal, though a parent of ours wrote to it', () => {
    for (const environment of [() => ({}), () => ({ JOURNAL_STREAM: '8:1' })]) {
      const logged = lines(writeTo(environment));
      expect(logged.map((line) => JSON.parse(line).msg)).toEqual([
        'info logged',
        'warn logged',
        'error logged',
        'fatal logged',
        'hostile',
      ]);
    }
  });

  it('on a full disk does not keep the program from its end', () => {
    const full = openSync('/dev/full', 'w');
    onTestFinished(() => closeSync(full));
    const { status, signal } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'ignore', full],
      env: { PATH: process.env.PATH },
      timeout: 60_000,
    });
    expect([status, signal]).toEqual([0, null]);
  });

  it('is at the level of CPN_LOG_LEVEL', () => {
    expect(lines(writeTo(() => ({ CPN_LOG_LEVEL: 'error' })))).toHaveLength(2);
    expect(writeTo(() => ({ CPN_LOG_LEVEL: 'silent' }))).toBe('');
  });

  it('is text on a terminal, which obeys nothing in it', () => {
    const typed = `${process.execPath} --input-type=module -e "$PROGRAM"`;
    const env = { PATH: process.env.PATH, SHELL: '/bin/sh', PROGRAM: program, TYPED: typed, NO_COLOR: '1' };
    const screen = execFileSync('sh', ['-c', 'script -qec "$TYPED" /dev/null'], { env, encoding: 'utf8' });
    const logged = screen.trimEnd().split('\r\n');
    expect(logged.map((line) => line.replace(/^\d\d:\d\d:\d\d /, ''))).toEqual([
      'info logged interface=cpn0',
      'warning: warn logged interface=cpn0',
      'error: error logged interface=cpn0',
      'error: fatal logged interface=cpn0',
      String.raw`warning: hostile name="\u009b31m\u202e a" list=["a b"]`,
    ]);
  });
});

describe('a log whose reader has stopped reading', () => {
  const flooding = `
import { openLog } from '${sources}/output/log.ts';
import { Input } from '${sources}/input/input.ts';
const log = openLog(new Input({}, {}, process.env), 'info');
for (let line = 0; line < 10_000; line += 1) log.info({ line }, 'a line that waits for its reader');
process.on('SIGTERM', () => process.exit(7));
process.stdin.on('data', () => log.info('still here'));
process.stdout.write('all said');
`;
  const flood = async () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', flooding], { env: { PATH: process.env.PATH } });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    return child;
  };

  it('holds up neither the program nor a signal', async () => {
    const child = await flood();
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await ended).toEqual([7, null]);
    child.stderr.resume();
  });

  it('says how many lines it dropped when it is read again, and goes on', async () => {
    const child = await flood();
    let said = '';
    const dropped = new Promise<void>((resolve) => {
      child.stderr.setEncoding('utf8').on('data', (text) => {
        said += text;
        if (said.includes('"log lines dropped"}\n')) resolve();
      });
    });
    await dropped;
    child.stdin.write('x');
    while (!said.includes('still here')) await once(child.stderr, 'data');
    const logged = lines(said).map((line) => JSON.parse(line));
    const count = logged.filter(({ msg }) => msg === 'log lines dropped').reduce((sum, line) => sum + line.lines, 0);
    expect(count).toBeGreaterThan(0);
    expect(logged.filter(({ line }) => line !== undefined).length + count).toBe(10_000);
  });
});

describe('a line', () => {
  it('of an unexpected failure shows its stack on a terminal', () => {
    const line = JSON.stringify({
      level: 50,
      time: 0,
      stack: 'Error: no\n    at \u001b[2J',
      msg: 'this should not happen',
    });
    expect(lineForPeople(line).split('\n').slice(1)).toEqual(['  Error: no', '      at \ufffd[2J', '']);
  });

  it('that cannot be read has the priority of one that only tells', () => {
    expect(lineForJournal('what\n')).toBe('<6>what\n');
  });
});
