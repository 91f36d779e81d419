import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Input } from '../../../src/cli/input/input.ts';
import { programExamples } from '../../../src/cli/output/start-screen.ts';
import type { Command } from '../../../src/cli/parse/command.ts';
import { loadCommands } from '../../../src/cli/parse/commands.ts';
import { readCommandLine } from '../../../src/cli/program.ts';
import { NotJoined } from '../../../src/core/errors/index.ts';

const commands = await loadCommands();

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cpn-examples-'));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A host without networks and without a login. */
const environment = () => ({
  XDG_CONFIG_HOME: join(folder, 'xdg'),
  CPN_STATE_DIR: join(folder, 'state'),
  CPN_CONFIG_DIR: join(folder, 'config'),
  CPN_RUNTIME_DIR: join(folder, 'run'),
});

/** The arguments of `cpn` in a line of shell; without what is piped or redirected. */
function argumentsIn(example: string): string[] {
  const line = example.replace(/^(?:source <|)\((?:umask 077; )?(.*)\)$/, '$1');
  const [, words = ''] = /^cpn((?: +(?:'[^']*'|[^\s'<>|]+))*) *(?:$|[<>|])/.exec(line) ?? [];
  if (words === '') throw new Error(`this test cannot read the example: ${example}`);
  return [...words.matchAll(/'([^']*)'|[^\s']+/g)].map(([word, quoted]) => quoted ?? word);
}

async function readExample(example: string): Promise<{ command: Command; input: Input }[]> {
  const performed: { command: Command; input: Input }[] = [];
  await readCommandLine(argumentsIn(example), environment(), async (command, input) => {
    performed.push({ command, input });
  });
  return performed;
}

async function helpOf(...argv: string[]): Promise<string> {
  const log = vi.spyOn(console, 'log').mockReturnValue(undefined);
  try {
    await readCommandLine([...argv, '--help'], environment(), async () => {});
    return log.mock.calls.flat().join('\n').replaceAll(/\s+/g, ' ');
  } finally {
    log.mockRestore();
  }
}

const all = commands.flatMap((command) => command.examples.map((example) => ({ command, example })));

describe('the examples in help', () => {
  it.each(commands)('$name has some, and shows them', async ({ name, examples }) => {
    expect(examples.length).toBeGreaterThan(0);
    const help = await helpOf(...name.split(' '));
    for (const example of examples) expect(help).toContain(example.replaceAll(/\s+/g, ' '));
  });

  it.each(all)('$example is a command line of its command', async ({ command, example }) => {
    const performed = await readExample(example);
    expect(performed.map((each) => each.command.name)).toEqual([command.name]);
  });

  it.each(programExamples)('%s, of the program, is a command line too', async (example) => {
    const log = vi.spyOn(console, 'log').mockReturnValue(undefined);
    await readExample(example);
    log.mockRestore();
  });
});

describe('the help of a command with two arguments', () => {
  const wordsOf = ({ argument }: Command) => argument?.usage.match(/[a-z]+/g) ?? [];
  it.each(commands.filter((command) => wordsOf(command).length > 1))('$name describes each', async (command) => {
    const { summary } = command.argument ?? {};
    expect(Object.keys(summary ?? {})).toEqual(wordsOf(command));
    const help = await helpOf(...command.name.split(' '));
    for (const [word, text] of Object.entries(summary ?? {})) expect(help).toContain(`${word} ${text} `);
  });
});

it('the help of a key tells its name from that of a host', async () => {
  expect(await helpOf('key', 'create')).toContain('--name NAME: name of the key, not of the host: cpn join --name');
});

describe('the help of a switch that may be on', () => {
  it.each([
    ['join', '--direct-paths', '--no-direct-paths turns it off'],
    ['join', '--enable', '--no-enable turns it off'],
    ['set', '--local-candidates', '--no-local-candidates turns it off'],
    ['set', '--hosts', '--no-hosts turns it off'],
  ])('cpn %s --help, at %s, has %s', async (name, flag, text) => {
    const [, rest = ''] = (await helpOf(name)).split(` ${flag} `);
    expect(rest.split(/ --(?!no-)/)[0]).toContain(text);
  });

  it('a switch that is off has no such form', async () => {
    expect(await helpOf('join')).not.toMatch(/--no-(?:hosts|json) /);
  });
});

/** They reach out, go on, write, need a file or a terminal, or look at more of the host than a test should wait for. */
const active = [
  'join',
  'login',
  'run',
  'debug bundle',
  'doctor',
  'rules apply',
  'rules edit',
  'rules test',
  'control-plane serve',
  'control-plane backup',
  'control-plane reset-owner',
];
const harmless = all.filter(
  ({ command, example }) => !active.includes(command.name) && !/--watch|--form|--against/.test(example),
);

describe('an example lacks nothing that its command needs', () => {
  it.each(harmless)('$example', async ({ example }) => {
    const [performed] = await readExample(example);
    const silenced = [process.stdout, process.stderr].map((stream) => vi.spyOn(stream, 'write').mockReturnValue(true));
    try {
      const outcome = await performed?.command.run(performed.input).catch((error: Error) => error);
      // Without networks and without a login: nothing else may be wrong with an example.
      if (outcome instanceof NotJoined) return;
      expect(outcome instanceof Error ? outcome.message : outcome).toEqual(
        outcome instanceof Error ? expect.stringMatching(/^not logged in|needs root/) : expect.any(Number),
      );
    } finally {
      for (const write of silenced) write.mockRestore();
    }
  });
});
