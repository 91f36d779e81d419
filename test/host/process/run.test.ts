import { chmod, mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { CommandFailed, MissingTool } from '../../../src/core/errors/index.ts';
import type { Tool } from '../../../src/host/process/find-tool.ts';
import { OutputCache } from '../../../src/host/process/output-cache.ts';
import { type Run, runFrom, runOnTerminal } from '../../../src/host/process/run.ts';

vi.setConfig({ testTimeout: 30_000 });

let folder: string;
let run: Run;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-run-'));
  await mkdir(join(folder, 'first'));
  await mkdir(join(folder, 'second'));
});

/** The first two tools of a process are started without a shell. */
beforeEach(() => {
  run = runFrom([join(folder, 'first'), join(folder, 'second')]);
});

async function startShell(): Promise<void> {
  await install('nft', 'true');
  for (let count = 0; count < 3; count += 1) await run('nft', []);
}

afterAll(() => rm(folder, { recursive: true, force: true }));

async function install(tool: Tool, script: string, where = 'second'): Promise<void> {
  await writeFile(join(folder, where, tool), `#!/bin/sh\n${script}\n`);
  await chmod(join(folder, where, tool), 0o755);
}

async function failureOf(attempt: Promise<unknown>): Promise<CommandFailed> {
  const error = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(CommandFailed);
  return error as CommandFailed;
}

describe('finding a tool', () => {
  test('skips folders and files that are not executable', async () => {
    await mkdir(join(folder, 'first', 'nft'));
    await writeFile(join(folder, 'first', 'ip'), '');
    await install('nft', 'echo the real nft');
    await install('ip', 'echo the real ip');
    expect(await run('nft', [])).toBe('the real nft\n');
    expect(await run('ip', [])).toBe('the real ip\n');
  });

  test('skips a file that is world-writable', async () => {
    await install('ping', 'echo a false ping', 'first');
    await chmod(join(folder, 'first', 'ping'), 0o777);
    await install('ping', 'echo the real ping');
    expect(await run('ping', [])).toBe('the real ping\n');
  });

  test('reports how to install a missing tool', async () => {
    const attempt = runFrom([folder])('nft', []);
    await expect(attempt).rejects.toThrow(MissingTool);
    await expect(attempt).rejects.toThrow('nft was not found on this host; install it: apt install nftables');
  });

  test('ignores PATH', async () => {
    vi.stubEnv('PATH', join(folder, 'second'));
    await install('wg', 'echo a false wg');
    await expect(runFrom([join(folder, 'nowhere')])('wg', [])).rejects.toThrow(MissingTool);
    vi.unstubAllEnvs();
  });
});

describe.each([
  ['without a shell', async () => {}],
  ['by a shell of the pool', startShell],
])('%s', (_, prepare) => {
  beforeEach(prepare);

  describe('what a tool gets', () => {
    test('its environment has no variable of this process', async () => {
      vi.stubEnv('CANARY', 'of-the-caller');
      await install('wg', 'tr "\\0" "\\n" </proc/$$/environ; pwd');
      const said = await run('wg', []);
      expect(said.trim().split('\n').sort()).toEqual([
        '/',
        'LC_ALL=C',
        'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      ]);
      vi.unstubAllEnvs();
    });

    test('its arguments are passed on without a shell', async () => {
      await install('wg', 'for each; do echo "<$each>"; done');
      expect(await run('wg', ['a b', '', '$(id)', ';'])).toBe('<a b>\n<>\n<$(id)>\n<;>\n');
    });

    test('its input can be read from descriptor 0, and by the name /dev/stdin', async () => {
      const input = 'line\n'.repeat(50_000);
      await install('wg', 'cat');
      expect(await run('wg', [], { input })).toBe(input);
      await install('wg', 'cat /dev/stdin');
      expect(await run('wg', [], { input: new Secret(input) })).toBe(input);
    });

    test('without input, stdin is empty', async () => {
      await install('wg', 'cat; echo end');
      expect(await run('wg', [])).toBe('end\n');
    });
  });

  describe('a tool that fails', () => {
    test('is reported with its exit code and its error output in one line', async () => {
      await install(
        'ip',
        'echo "RTNETLINK answers: File exists" >&2; printf "  ^^^^\\n\\nCommand failed\\033[31m -:3\\n" >&2; exit 2',
      );
      const error = await failureOf(run('ip', ['link', 'add', 'dev', 'cpn0', 'type', 'wireguard']));
      expect(error.message).toBe(
        'ip link add dev ... exited with 2: RTNETLINK answers: File exists; Command failed\u{fffd}[31m -:3',
      );
      expect(error.facts).toMatchObject({ exitCode: 2, command: 'ip link add dev ...' });
    });

    test('succeeds with an allowed exit code', async () => {
      await install('ip', 'echo found nothing; exit 3');
      expect(await run('ip', [], { allowExitCodes: [3] })).toBe('found nothing\n');
      await failureOf(run('ip', [], { allowExitCodes: [4] }));
    });

    test('shows neither its output nor its input anywhere', async () => {
      const canary = 'canary0123456789canary';
      await install('wg', `echo ${canary}out; echo "Key is not the correct length or format: \\\`$(cat)'" >&2; exit 1`);
      const error = await failureOf(run('wg', ['addconf', 'cpn0', '/dev/stdin'], { input: new Secret(canary) }));
      expect(error.message).toContain("Key is not the correct length or format: `[secret]'");
      expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('canary');
      expect(JSON.stringify(error.facts)).not.toContain('canary');
    });

    test('is reported with the signal that ended it', async () => {
      await install('ip', 'kill -KILL $$');
      // A shell prints its own word for it.
      expect((await failureOf(run('ip', []))).message).toMatch(/^ip did not finish: (SIGKILL|Killed)$/);
    });

    test('is ended when it prints too much', async () => {
      await install('ip', 'exec yes 0123456789012345678901234567890123456789');
      expect((await failureOf(run('ip', []))).message).toBe('ip did not finish: it printed more than 64 MiB');
    });
  });

  describe('a tool past its deadline', () => {
    test('is ended, though it ignores SIGTERM', async () => {
      const pidFile = join(folder, 'pid');
      await install('ip', `trap '' TERM; echo $$ >${pidFile}; while :; do sleep 0.1; done`);
      const error = await failureOf(run('ip', ['monitor'], { deadlineMs: 300, allowExitCodes: [0] }));
      expect(error.message).toBe('ip monitor did not finish: timed out after 300 ms');
      const pid = Number(await readFile(pidFile, 'utf8'));
      await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'), { timeout: 10_000 });
    });
  });
});

describe('a tool that is started without a shell', () => {
  test('is reported when it cannot be started', async () => {
    await writeFile(join(folder, 'second', 'ip'), '#!/no/such/interpreter\n');
    expect((await failureOf(run('ip', []))).message).toContain('ENOENT');
  });

  test('ends the call, although a child holds the pipes', async () => {
    const pidFile = join(folder, 'child');
    await install('ip', `sleep 600 & echo $! >${pidFile}`);
    const error = await failureOf(run('ip', [], { deadlineMs: 300 }));
    process.kill(Number(await readFile(pidFile, 'utf8')));
    expect(error.message).toBe('ip did not finish: timed out after 300 ms');
  });
});

describe('a tool that leaves a process behind', () => {
  test('ends with its first process, and the other lives on in a session of its own', async () => {
    const pidFile = join(folder, 'daemon');
    await install('wireguard-go', `sleep 600 & echo $! >${pidFile}`);
    expect(await run('wireguard-go', ['cpn0'], { daemon: true })).toBe('');
    const pid = Number(await readFile(pidFile, 'utf8'));
    const session = Number((await readFile(`/proc/${pid}/stat`, 'utf8')).split(' ')[5]);
    const ours = Number((await readFile('/proc/self/stat', 'utf8')).split(' ')[5]);
    process.kill(pid);
    expect(session).not.toBe(ours);
  });

  test('is reported with stdout and stderr, without the banner, when it fails', async () => {
    await install('wireguard-go', 'printf "┌──┐\\n│ You are │\\n└──┘\\n" >&2; echo "ERROR: no TUN device"; exit 1');
    const error = await failureOf(run('wireguard-go', ['cpn0'], { daemon: true }));
    expect(error.message).toBe('wireguard-go cpn0 exited with 1: ERROR: no TUN device');
  });
});

describe('a tool that runs again and again', () => {
  const again = () => new OutputCache();

  test('is run by one shell of the pool, as other tools are, from the third run on, and returns the current output', async () => {
    const counter = join(folder, 'count');
    await writeFile(counter, '');
    for (const tool of ['wg', 'ip', 'nft'] as const) {
      await install(tool, `echo x >>${counter}; wc -l <${counter}; echo "$PPID $*" >>${counter}.parents`);
    }
    const known = again();
    for (const [tool, count] of [
      ['wg', '1'],
      ['ip', '2'],
      ['nft', '3'],
      ['wg', '4'],
      ['ip', '5'],
    ] as const) {
      expect((await run(tool, ['show', '$(date)', "a 'b'", 'c\\'], { outputCache: known })).trim()).toBe(count);
    }
    const parents = (await readFile(`${counter}.parents`, 'utf8')).trim().split('\n');
    expect(parents.every((line) => line.endsWith(" show $(date) a 'b' c\\"))).toBe(true);
    const [first, second, ...others] = parents.map((line) => line.split(' ')[0]);
    expect([first, second]).toEqual([String(process.pid), String(process.pid)]);
    expect(new Set(others).size).toBe(1);
    expect(others[0]).not.toBe(first);
  });

  test('is not run by a shell where a word has lines, or many letters', async () => {
    await startShell();
    await install('wg', `echo "$PPID $(printf %s "$1" | wc -c)"`);
    for (const word of ['a\nb', 'c'.repeat(5000)])
      expect(await run('wg', [word])).toBe(`${process.pid} ${word.length}\n`);
    expect(await run('wg', ['a'])).not.toContain(`${process.pid} `);
  });

  test('reads its whole input each time, and may print nothing, less or more', async () => {
    await install('ip', 'read -r line; read -r number <"$line"; yes "$number" | head -n "$number"');
    const count = join(folder, 'number');
    const known = again();
    for (const number of [2, 70_000, 0, 1, 1, 0, 3]) {
      await writeFile(count, `${number}\n`);
      const text = await run('ip', ['-batch', '-'], { input: `${count}\nand more\n`, outputCache: known });
      expect(text).toBe(`${number}\n`.repeat(number));
    }
  });

  test('fails like any other tool, and runs again after that', async () => {
    const broken = join(folder, 'broken');
    await install('wg', `[ ! -e ${broken} ] || { echo 'No such device' >&2; exit 3; }; echo well`);
    const known = again();
    for (const isBroken of [false, false, true, false, true, true, false]) {
      await (isBroken ? writeFile(broken, '') : rm(broken, { force: true }));
      const attempt = run('wg', ['show', 'cpn0', 'dump'], { outputCache: known });
      if (!isBroken) expect(await attempt).toBe('well\n');
      else
        expect((await failureOf(attempt)).facts).toMatchObject({
          command: 'wg show cpn0 dump',
          stderr: 'No such device',
        });
    }
  });

  test('that hangs is ended with its children at its deadline, and runs again after that', async () => {
    const hanging = join(folder, 'hanging');
    await install('nft', `[ ! -e ${hanging} ] || { echo $$ >${hanging}; sleep 1000; }; echo well`);
    const options = { outputCache: again(), deadlineMs: 3000 };
    for (let round = 0; round < 3; round += 1) expect(await run('nft', ['list'], options)).toBe('well\n');
    await writeFile(hanging, '');
    expect((await failureOf(run('nft', ['list'], options))).message).toContain('timed out after 3000 ms');
    const pid = Number(await readFile(hanging, 'utf8'));
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow(), { timeout: 10_000 });
    await rm(hanging);
    for (let round = 0; round < 3; round += 1) expect(await run('nft', ['list'], options)).toBe('well\n');
  });

  test('runs although its shell was killed meanwhile, unless it may have changed something', async () => {
    const pidFile = join(folder, 'shell');
    await startShell();
    await install('wg', `[ -e ${pidFile} ] || { echo $PPID >${pidFile}; kill -KILL $PPID; }; echo well`);
    expect(await run('wg', ['show'], { outputCache: again() })).toBe('well\n');
    await startShell();
    await rm(pidFile);
    const error = await failureOf(run('wg', ['addconf']));
    expect(error.message).toBe('wg addconf did not finish: the shell that ran it was killed');
    expect(await run('wg', ['addconf'])).toBe('well\n');
  });

  test('reads a new input each time, of which nothing is left, and shows no secret of it', async () => {
    await startShell();
    await install(
      'wg',
      'read -r name key; [ "$name" != bad ] || { echo "not a key: $key" >&2; exit 1; }; echo "$name "',
    );
    const give = (text: string) => run('wg', ['addconf'], { input: new Secret(text) });
    for (const name of ['one', 'two', 'three', 'a-longer-name', 'four']) {
      expect(await give(`${name} the-key-of-${name}\n`)).toContain(`${name} `);
    }
    const error = await failureOf(give('bad the-secret-key-that-is-long\n'));
    expect(error.facts.exitCode).toBe(1);
    expect(JSON.stringify(error.facts) + error.message).not.toContain('the-secret-key-that-is-long');
    await install('wg', 'read -r name key; echo "not a key: $(echo "$key" | cut -c 1-12)" >&2; exit 1');
    const cut = await failureOf(give('bad the-secret-key-that-is-long\n'));
    expect(JSON.stringify(cut.facts) + cut.message).not.toContain('the-secret');
    await install('wg', 'read -r name key; echo "$name "');
    expect(await give('five the-last-key\n')).toContain('five ');
    const files = await openAnonymousFiles();
    expect(files.length).toBeGreaterThan(0);
    expect(files.join()).not.toContain('key');
  });

  test('runs for several callers at once', async () => {
    await install('ip', 'echo "$*"');
    const words = ['a', 'b', 'c', 'a', 'b', 'c', 'a', 'b', 'c'];
    const said = words.map((word) => run('ip', [word], { outputCache: again() }));
    expect(await Promise.all(said)).toEqual(words.map((word) => `${word}\n`));
    expect(await Promise.all(words.map((word) => run('ip', [word], { outputCache: again() })))).toHaveLength(9);
  });
});

/** What is in each file without a name that this process has open. */
async function openAnonymousFiles(): Promise<string[]> {
  const open = await Promise.all(
    (await readdir('/proc/self/fd')).map(async (fd) => {
      const path = `/proc/self/fd/${fd}`;
      const target = await readlink(path).catch(() => '');
      return /^\/(dev\/shm|run|tmp)\/#\d+ \(deleted\)$/.test(target) ? [await readFile(path, 'utf8')] : [];
    }),
  );
  return open.flat();
}

describe('a program of the user', () => {
  test('runs to its end with its arguments, which no shell reads, and with the environment', async () => {
    const path = join(folder, 'editor');
    await writeFile(path, `#!/bin/sh\nprintf '%s ' "$@" "$EDITED" >"$1"\n`, { mode: 0o755 });
    vi.stubEnv('EDITED', 'here');
    vi.stubEnv('PATH', `${folder}:${process.env.PATH}`);
    const file = join(folder, 'edited');
    await runOnTerminal('editor', [file, '$(id) ; a  b']);
    expect(await readFile(file, 'utf8')).toBe(`${file} $(id) ; a  b here `);
    vi.unstubAllEnvs();
  });

  test.each([
    ['false', [], { exitCode: 1 }],
    ['cpn-no-such-editor', ['a'], { exitCode: null }],
  ])('%s fails', async (program, args, facts) => {
    const error = await failureOf(runOnTerminal(program, args));
    expect(error.facts).toMatchObject(facts);
    expect(error.message).toContain(program);
    expect(process.listenerCount('SIGINT')).toBe(0);
  });
});
