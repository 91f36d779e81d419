import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const source = join(import.meta.dirname, '../../../src/cli/input/prompt.ts');
const program = `
import { prompt } from '${source}';
console.log('the answer is ' + (await prompt('password', { message: 'Enrolment key' })));
`;

test('a prompt that was suspended by Ctrl-Z goes on after fg', async () => {
  const terminal = spawn('sh', ['-c', 'exec script -qec "exec bash --norc -i" /dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, SHELL: '/bin/sh', TERM: 'xterm', LANG: 'C.UTF-8', PS1: 'shell$ ', PROGRAM: program },
  });
  onTestFinished(() => void terminal.kill('SIGKILL'));
  let screen = '';
  const dialogue: [RegExp, string][] = [
    [/shell\$ /, `'${process.execPath}' --input-type=module -e "$PROGRAM"\r`],
    [/Enrolment key/, '\x1a'],
    [/Stopped[\s\S]*shell\$ /, 'fg\r'],
    [/Enrolment key/, 'typed\r'],
    [/the answer is typed[\s\S]*shell\$ |shell\$ /, 'exit\r'],
  ];
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text;
    const [next] = dialogue;
    const found = next?.[0].exec(screen);
    if (next === undefined || found == null) return;
    screen = screen.slice(found.index + found[0].length);
    shown += found[0];
    dialogue.shift();
    terminal.stdin.write(next[1]);
  });
  let shown = '';
  await once(terminal, 'close');
  expect(dialogue).toEqual([]);
  expect(shown).toContain('the answer is typed');
});
