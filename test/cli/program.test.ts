import { describe, expect, it, vi } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';

async function say(...argv: string[]) {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    const exitCode = await runProgram(argv, {});
    return { exitCode, said: write.mock.calls.map(([text]) => String(text)).join('') };
  } finally {
    write.mockRestore();
  }
}

describe('a command line that cannot be read', () => {
  it.each([
    [['jion'], 'there is no command "jion"; did you mean join?'],
    [['key', 'create'], 'the command lacks an argument; "cpn key create --help" shows which'],
    [['join', '--colour'], 'Unknown argument: colour; "cpn --help" lists commands and flags'],
    [['key'], 'name what to do; "cpn key --help" lists it'],
  ])('%j is answered in one line', async (argv, line) => {
    expect(await say(...argv)).toEqual({ exitCode: 2, said: `cpn: ${line}\n` });
  });

  it('does not show a key that was typed in it', async () => {
    for (const argv of [
      ['jion', 'cpn_canary'],
      ['logni', 'cpt_canary'],
      ['logni', 'cpu_canary'],
      ['join', 'cpn_canary', 'cpn_canary'],
      ['up', 'a', 'cpn_canary'],
    ]) {
      const { exitCode, said } = await say(...argv);
      expect([exitCode, said]).toEqual([2, expect.not.stringContaining('canary')]);
    }
  });
});
