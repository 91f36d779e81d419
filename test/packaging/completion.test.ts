import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadCommands } from '../../src/cli/parse/commands.ts';
import { run } from '../lab/run.ts';

const commands = await loadCommands();

const program = join(import.meta.dirname, '../../dist/start.cjs');
const names = commands.map(({ name }) => name);
const firstWords = [...new Set(names.map((name) => name.split(' ')[0] ?? ''))];
const inGroup = (group: string) =>
  names.flatMap((name) => (name.startsWith(`${group} `) ? [name.slice(group.length + 1)] : []));
const peerTypes = ['admin_device', 'connector', 'origin'];

/** What stands on the command line, and what is offered for its last word. */
const questions: readonly [line: string, offered: readonly string[]][] = [
  ['cpn ', firstWords],
  ['cpn recon', ['reconcile']],
  ['cpn network ', inGroup('network')],
  ['cpn control-plane ', inGroup('control-plane')],
  ['cpn join --accept', ['--accept-routes']],
  ['cpn join --no-accept', ['--no-accept-routes']],
  ['cpn network create --ci', ['--cidr']],
  ['cpn network list --ci', []],
  ['cpn join --type ', peerTypes],
  ['cpn join file:key --api https://cp.example.net:8787 --type ', peerTypes],
  ['cpn join --type=con', ['connector']],
  ['cpn wait --for h', ['handshake']],
  ['cpn completion ', ['bash', 'fish', 'zsh']],
  ['cpn login --password-file FOLDER/off', ['office-folder', 'office.json']],
  ['cpn control-plane serve --data FOLDER/of', ['office-folder']],
  // The interfaces of this host, by the names of its state files.
  ['cpn status ', ['cpn0', 'office']],
  ['cpn accept edge-1 o', ['office']],
  // A network that must be named is the control plane's.
  ['cpn network show ', []],
  ['cpn events ', []],
  ['cpn events --type route.d', ['route.dead']],
];

const shells = {
  bash: { file: 'cpn', ask: ['bash', '--noprofile', '--norc', join(import.meta.dirname, 'ask.bash')] },
  zsh: { file: '_cpn', ask: ['zsh', '-f', join(import.meta.dirname, 'ask.zsh')] },
  fish: {
    file: 'cpn.fish',
    ask: ['fish', '--no-config', '-c', 'source $argv[1]; for line in $argv[2..]; complete -C $line; echo .; end'],
  },
};

let folder: string;
let environment: Record<string, string>;

beforeAll(async () => {
  // No dash before the random letters: ask.zsh would take "-D" in a path for a flag of compadd.
  folder = mkdtempSync(join(tmpdir(), 'cpn-completion_'));
  for (const [shell, { file }] of Object.entries(shells)) {
    const { stdout } = await run([process.execPath, program, 'completion', shell]);
    writeFileSync(join(folder, file), stdout);
  }
  mkdirSync(join(folder, 'state', 'office-folder'), { recursive: true });
  for (const file of ['cpn0.json', 'office.json', 'cpn0.json.previous']) {
    writeFileSync(join(folder, 'state', file), '{}');
  }
  environment = { CPN_STATE_DIR: join(folder, 'state'), HOME: folder, PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8' };
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The words offered alone: fish repeats what stands before "=" or "/", and says after a tab what a word is. */
function readOffer(text: string): string[] {
  const words = text.split('\n').map((line) => line.replace(/\t.*/, '').replace(/\/$/, ''));
  return [...new Set(words.map((word) => word.replace(/^.*[=/]/, '')))].filter((word) => word !== '').sort();
}

describe.each(Object.entries(shells))('%s', (shell, { file, ask }) => {
  it('loads the completion without a complaint', async () => {
    expect((await run([shell, '-n', join(folder, file)], { env: environment })).stderr).toBe('');
  });

  it('offers commands, flags, values, files and interfaces where they belong', async () => {
    const lines = questions.map(([line]) => line.replace('FOLDER', join(folder, 'state')));
    const asked = await run([...ask, join(folder, file), ...lines], { env: environment, timeoutMs: 50_000 });
    expect(asked.stderr).toBe('');
    const offers = asked.stdout.split(/^\.$/m);
    expect(questions.map(([line], i) => [line, readOffer(offers[i] ?? '')])).toEqual(
      questions.map(([line, offered]) => [line, offered.toSorted()]),
    );
  });
});

describe('cpn completion', () => {
  it('names the shells it knows', async () => {
    const { exitCode, stderr } = await run([process.execPath, program, 'completion', 'tcsh'], { allowFailure: true });
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('"tcsh" must be one of bash, zsh, fish')]);
  });
});
