import { fstatSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import { type AnonymousFile, openAnonymousFile, readAnonymousFile } from '../../../src/host/process/anonymous-file.ts';
import { isTooLong } from '../../../src/host/process/command-error.ts';
import { OutputCache } from '../../../src/host/process/output-cache.ts';
import { runInShell } from '../../../src/host/process/run-in-shell.ts';
import type { ToolOptions } from '../../../src/host/process/run-options.ts';
import { type Shell, ShellPool, StandingShell, type ToolResult } from '../../../src/host/process/shell-pool.ts';

/** A shell whose tools do what the test says; `inputs` has the input file at the start of each. */
class FakeShell implements Shell {
  readonly files: readonly AnonymousFile[];
  readonly #inodes: readonly number[];
  readonly inputs: string[] = [];
  readonly #end = Promise.withResolvers<void>();
  readonly ended = this.#end.promise;
  kills = 0;
  say: (piece: string) => void = () => {};
  onRun = (): void => this.say('0\n');

  constructor(files: readonly AnonymousFile[]) {
    this.files = files;
    this.#inodes = files.map(({ fd }) => fstatSync(fd).ino);
  }

  write(): void {
    const [input] = this.files;
    if (input) this.inputs.push(readAnonymousFile(input, 1000));
    this.onRun();
  }

  onData(listen: (piece: string) => void): void {
    this.say = listen;
  }

  kill(): void {
    this.kills += 1;
    this.#end.resolve();
  }

  /** True for each file that is still open. */
  get open(): boolean[] {
    return this.files.map(({ fd }, at) => {
      try {
        return fstatSync(fd).ino === this.#inodes[at];
      } catch {
        return false;
      }
    });
  }
}

function poolOfFakes(onStart: (shell: FakeShell) => void = () => {}) {
  const shells: FakeShell[] = [];
  const pool = new ShellPool(async (_, files) => {
    const shell = new FakeShell(files);
    shells.push(shell);
    onStart(shell);
    return shell;
  });
  const run = () => pool.use(['/bin/wg'], (shell) => shell.run(['/bin/wg'], '', 1000).then((result) => [result]), true);
  return { pool, shells, run };
}

afterEach(() => void vi.useRealTimers());

describe('a pool of shells', () => {
  test('keeps a place for each shell that could not be started, and closes its files', async () => {
    const { shells, run } = poolOfFakes(() => {
      if (shells.length <= 10) throw new Error('EAGAIN');
    });
    for (let turn = 0; turn < 10; turn += 1) expect(await run()).toBeNull();
    expect(await run()).toMatchObject([{ exitCode: 0 }]);
    for (const { open } of shells.slice(0, 10)) expect(open).toEqual([false, false, false]);
  });

  test.each([
    ['while it ran a tool', (shell: FakeShell) => Object.assign(shell, { onRun: () => shell.kill() }), null],
    ['while it was idle', () => {}, 0],
  ])('replaces each shell that ended %s, and closes its files', async (_, prepare, exitCode) => {
    const { shells, run } = poolOfFakes(prepare);
    for (let turn = 1; turn <= 10; turn += 1) {
      expect(await run()).toEqual([exitCode === null ? null : expect.objectContaining({ exitCode })]);
      shells.at(-1)?.kill();
      await setImmediate();
    }
    expect(shells).toHaveLength(10);
    await run();
    for (const { open } of shells.slice(0, 10)) expect(open).toEqual([false, false, false]);
  });

  test('runs four tools at once, and leaves further ones to the caller', async () => {
    const { shells, run } = poolOfFakes((shell) => {
      shell.onRun = () => {};
    });
    const runs = Array.from({ length: 6 }, run);
    await vi.waitUntil(() => shells.filter(({ inputs }) => inputs.length > 0).length === 4);
    for (const shell of shells) shell.say('0\n');
    const results = await Promise.all(runs);
    expect(results.map((result) => result !== null)).toEqual([true, true, true, true, false, false]);
    expect(shells).toHaveLength(4);
  });
});

describe('a shell', () => {
  async function open() {
    const shells: FakeShell[] = [];
    const standing = await StandingShell.open(async (_, files) => {
      const shell = new FakeShell(files);
      shells.push(shell);
      return shell;
    });
    const [shell] = shells;
    if (shell === undefined) throw new Error('it was not started');
    return { standing, shell };
  }
  const contentOf = ({ files: [input] }: FakeShell) => input && readAnonymousFile(input, 1000);

  test.each<[string, (shell: FakeShell) => void]>([
    ['ended', (shell) => shell.say('0\n')],
    ['failed', (shell) => shell.say('1\n')],
    ['was killed with its shell', (shell) => shell.kill()],
    ['took too long', () => {}],
  ])('keeps no secret input of a tool that %s', async (_, end) => {
    const { standing, shell } = await open();
    shell.onRun = () => end(shell);
    await standing.run(['/bin/wg'], new Secret('the key'), 5);
    expect([shell.inputs, contentOf(shell)]).toEqual([['the key'], '']);
    standing.close();
  });

  test('gives each tool its own input alone, shorter or longer', async () => {
    const { standing, shell } = await open();
    const inputs = ['a longer input\n', 'short\n', 'short\n', '', 'a longer input\n'];
    for (const input of inputs) await standing.run(['/bin/wg'], input, 1000);
    expect(shell.inputs).toEqual(inputs);
    standing.close();
  });

  test('is not killed by the deadline of a tool that ended before', async () => {
    const { standing, shell } = await open();
    vi.useFakeTimers();
    await standing.run(['/bin/wg'], '', 1000);
    await vi.advanceTimersByTimeAsync(2000);
    expect([standing.isGone, shell.kills]).toEqual([false, 0]);
    standing.close();
  });

  test('that prints anything else than an exit code is killed', async () => {
    const { standing, shell } = await open();
    shell.onRun = () => shell.say('x'.repeat(40));
    expect(await standing.run(['/bin/wg'], '', 1000)).toBeNull();
    expect([standing.isGone, shell.kills > 0]).toEqual([true, true]);
    standing.close();
  });
});

describe('a tool in a shell', () => {
  /** The outcome of a tool that ends so, and whether only a shell may run it. */
  async function outcomeOf(result: Partial<ToolResult> | null, options: ToolOptions = {}) {
    const files = [openAnonymousFile('printed\n'), openAnonymousFile('a warning\n')] as const;
    const [stdout, stderr] = files;
    let needsShell: boolean | undefined;
    const run = async () => result && { exitCode: 0, stdout, stderr, ...result };
    const pool = {
      use: (_: unknown, work: (shell: StandingShell) => unknown, isBounded: boolean) => {
        needsShell = isBounded;
        return work({ run } as unknown as StandingShell);
      },
    };
    const text = await runInShell(pool as unknown as ShellPool, '/bin/ip', 'ip', ['route'], options).catch(
      (error: unknown) => error,
    );
    for (const file of files) file.close();
    return { text, needsShell };
  }

  test('is run again by the caller where its shell was killed, unless it may have changed something', async () => {
    expect((await outcomeOf(null, { outputCache: new OutputCache() })).text).toBeNull();
    expect((await outcomeOf(null)).text).toBeInstanceOf(CommandFailed);
  });

  test('that printed too much is reported as that, and needs a shell, which enforces the limit', async () => {
    const { text, needsShell } = await outcomeOf({ exitCode: 128 + 25 }, { maxBytes: 1024 });
    expect([isTooLong(text), needsShell]).toEqual([true, true]);
    expect((await outcomeOf({}, {})).needsShell).toBe(false);
    expect(isTooLong((await outcomeOf({}, { maxBytes: 4 })).text)).toBe(true);
  });

  test('passes on its warnings, also with an allowed exit code', async () => {
    const warnings: string[] = [];
    const options = { allowExitCodes: [1], onErrors: (stderr: string) => void warnings.push(stderr) };
    for (const exitCode of [0, 1]) expect((await outcomeOf({ exitCode }, options)).text).toBe('printed\n');
    expect((await outcomeOf({ exitCode: 2 }, options)).text).toBeInstanceOf(CommandFailed);
    expect(warnings).toEqual(['a warning\n', 'a warning\n']);
  });
});
