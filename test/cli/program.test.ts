import { describe, expect, it, vi } from 'vitest';
import { programExamples, topics } from '../../src/cli/output/start-screen.ts';
import { groups } from '../../src/cli/parse/command.ts';
import { loadCommands } from '../../src/cli/parse/commands.ts';
import { runProgram } from '../../src/cli/program.ts';

const commands = await loadCommands();

async function say(...argv: string[]) {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const print = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  const textOf = ({ mock }: typeof write) => mock.calls.map(([text]) => String(text)).join('');
  try {
    const exitCode = await runProgram(argv, { CPN_STATE_DIR: '/nowhere' });
    return { exitCode, said: textOf(write), printed: textOf(print) };
  } finally {
    write.mockRestore();
    print.mockRestore();
  }
}

describe('a command line that cannot be read', () => {
  it.each([
    [['jion'], 'there is no command "jion"; did you mean "cpn join"?'],
    [['jion', '--help'], 'there is no command "jion"; did you mean "cpn join"?'],
    [['help', 'jion'], 'there is no command "jion"; did you mean "cpn join"?'],
    [['network', 'lst'], 'there is no command "network lst"; did you mean "cpn network list"?'],
    [['netwrk', 'list'], 'there is no command "netwrk"; did you mean "cpn network list"?'],
    [['network', 'xyzzy'], 'there is no command "network xyzzy"; "cpn network --help" lists them'],
    [['connect'], 'there is no command "connect"; did you mean "cpn join" or "cpn up"?'],
    [
      ['create'],
      'there is no command "create"; did you mean "cpn network create", "cpn key create", "cpn user create" or "cpn token create"?',
    ],
    [['xyzzy'], 'there is no command "xyzzy"; "cpn --help" lists them'],
    [['constructor'], 'there is no command "constructor"; "cpn --help" lists them'],
    [['cpn_canary'], 'there is no command "cpn_[secret]"; did you mean "cpn join"?'],
    [
      ['key', 'create'],
      'cpn key create needs an argument: <network> (id or name of a network); example: cpn key create office --name web-1 >key',
    ],
    [['join', '--colour'], 'cpn join has no flag --colour; "cpn join --help" lists its flags'],
    [['join', '--lisen-port', '51820'], 'cpn join has no flag --lisen-port; did you mean --listen-port?'],
    [['join', '--masq'], 'cpn join has no flag --masq; did you mean --masquerade?'],
    [['join', '--no-acept-routes=1'], 'cpn join has no flag --no-acept-routes; did you mean --accept-routes?'],
    [['status', '-x'], 'cpn status has no flag -x; "cpn status --help" lists its flags'],
    [['peer', 'update', 'office', 'web', '--tags', 'ops'], '--tags takes no value; did you mean --tag?'],
    [['status', 'office', '--json', 'cpn1'], '--json takes no value; leave out "cpn1"'],
    [['status', 'office', 'cpn1'], 'unexpected argument "cpn1"; usage: cpn status [network]'],
    [
      ['network', 'create', 'office'],
      'unexpected argument "office"; example: cpn network create --name office --cidr 10.77.0.0/24 --route 192.168.50.0/24',
    ],
    [
      ['network', 'create', '--name', 'office', '--cidr', '10.77.0.5/24'],
      '--cidr "10.77.0.5/24" has host bits set; you probably mean 10.77.0.0/24',
    ],
    [['join', '--name'], '--name needs a value: --name NAME'],
  ])('%j is answered in one line', async (argv, line) => {
    expect(await say(...argv)).toEqual({ exitCode: 2, said: `cpn: ${line}\n`, printed: '' });
  });

  it('names a group alone, and shows what it has', async () => {
    const { exitCode, said } = await say('key');
    expect(exitCode).toBe(2);
    expect(said).toMatch(
      /^ {2}cpn key create <network> {2,}\S.*\n {2}cpn key list <network> .*\n {2}cpn key revoke <network> <key> .*\n/,
    );
    expect(said).toMatch(/\ncpn: a subcommand is missing; "cpn key --help" lists them\n$/);
  });

  it('does not show a key that was typed in it', async () => {
    for (const argv of [
      ['jion', 'cpn_canary'],
      ['logni', 'cpt_canary'],
      ['logni', 'cpu_canary'],
      ['join', 'cpn_canary', 'cpn_canary'],
      ['up', 'a', 'cpn_canary'],
      ['up', '--cpn_canary'],
      ['join', '--key=cpn_canary'],
      ['join', '--cpn_canary=x'],
    ]) {
      const { exitCode, said } = await say(...argv);
      expect([exitCode, said]).toEqual([2, expect.not.stringContaining('canary')]);
    }
  });
});

describe('cpn --help', () => {
  it.each(['--help', '-h', 'help'])('by %j lists every command and group with its summary, by topic', async (word) => {
    const { exitCode, printed } = await say(word);
    expect(exitCode).toBe(0);
    expect(Math.max(...printed.split('\n').map((line) => line.length))).toBeLessThanOrEqual(110);
    const lines = printed.replace(/\n {10,}/g, ' ').split('\n');
    const first = commands.filter(({ name }) => !name.includes(' '));
    const shapes = first.map(({ name, argument, summary }) => [argument ? `${name} ${argument.usage}` : name, summary]);
    for (const [shape = '', summary = ''] of [...shapes, ...Object.entries(groups), ...programExamples])
      expect(lines.filter((line) => line.startsWith(`  ${shape}  `) && line.endsWith(`  ${summary}`))).toHaveLength(1);
  });
});

describe('cpn alone', () => {
  it('shows the first step on one screen, and exits with 2', async () => {
    const { exitCode, said } = await say();
    expect(exitCode).toBe(2);
    expect(said).toContain('\n  cpn join file:key --api https://cp.example.net\n');
    const lines = said.trimEnd().split('\n');
    expect(lines.length).toBeLessThan(24);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it('names every command and group once', () => {
    const all = [...commands.map(({ name }) => name).filter((name) => !name.includes(' ')), ...Object.keys(groups)];
    expect(Object.values(topics).flat().toSorted()).toEqual(all.toSorted());
  });
});
