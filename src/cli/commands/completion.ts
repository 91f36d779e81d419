import { completeBash } from '../completion/bash.ts';
import { completeFish } from '../completion/fish.ts';
import { completeZsh } from '../completion/zsh.ts';
import { exitCodes } from '../exit-code.ts';
import { parseChoice } from '../input/input.ts';
import { type Command, groups } from '../parse/command.ts';

const shells = ['bash', 'zsh', 'fish'] as const;

/** The command that prints a shell's completion of all commands, including itself. */
export const completionOf = (loadCommands: () => Promise<readonly Command[]>): Command => ({
  name: 'completion',
  argument: { usage: '<shell>', summary: 'bash, zsh or fish', choices: { shell: shells } },
  summary: 'Print the shell completion script',
  flags: {},
  examples: [
    'source <(cpn completion bash)',
    'cpn completion zsh >/usr/local/share/zsh/site-functions/_cpn',
    'cpn completion fish | source',
  ],
  async run(input) {
    const shell = parseChoice('SHELL', input.argument('shell') ?? '', shells);
    process.stdout.write(await completionFor(shell, await loadCommands()));
    return exitCodes.done;
  },
});

export async function completionFor(shell: (typeof shells)[number], commands: readonly Command[]): Promise<string> {
  if (shell === 'bash') return completeBash(commands, Object.keys(groups));
  if (shell === 'zsh') return completeZsh(commands, groups);
  return completeFish(commands, groups);
}
