import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const sources = join(import.meta.dirname, '../../../src/cli');
const question = 'Remove edge-1 (10.77.0.1) from office? (y/n)';
const program = `
import { findRecipient } from '${sources}/output/hand-over.ts';
import { Input } from '${sources}/input/input.ts';
import { prompt } from '${sources}/input/prompt.ts';
const flags = { qr: { kind: 'switch', summary: '' }, output: { kind: 'text', summary: '' } };
const recipient = await findRecipient(new Input({ qr: true }, flags, {}), 'wg-quick');
recipient.check([{ text: 'x'.repeat(300) }]);
const answer = await prompt('text', { message: '${question}' });
console.log(process.stderr.columns + ' columns, answer ' + answer);
`;

test.each([
  [0, 80],
  [100, 100],
])('on a terminal that reports %i columns a prompt is whole and a QR code fits', async (reported, used) => {
  // Without the question on one line the program would wait forever.
  const typed = `stty cols ${reported} rows ${reported}; exec timeout --foreground 60 '${process.execPath}' --input-type=module -e "$PROGRAM"`;
  const terminal = spawn('sh', ['-c', 'exec script -qec "$TYPED" /dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, SHELL: '/bin/sh', TERM: 'xterm', LANG: 'C.UTF-8', TYPED: typed, PROGRAM: program },
  });
  let screen = '';
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    const wasShown = screen.includes(question);
    screen += text;
    if (!wasShown && screen.includes(question)) terminal.stdin.write('y\r');
  });
  await once(terminal, 'close');
  expect(screen).toContain(question);
  expect(screen).toContain(`${used} columns, answer y`);
});
