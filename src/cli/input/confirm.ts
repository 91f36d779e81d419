import { printable } from '../../core/errors/index.ts';
import { note } from '../output/output.ts';
import type { Input } from './input.ts';

/** Prompts before a destructive command on a terminal; with `--yes`, and without a terminal, the answer is yes. */
export async function confirm(question: string, input: Input): Promise<boolean> {
  if (input.switch('yes') || !process.stdin.isTTY || !process.stderr.isTTY) return true;
  const prompts = await import('@clack/prompts');
  const answer = await prompts.confirm({ message: printable(question), initialValue: false, output: process.stderr });
  if (answer !== true) note('nothing was done');
  return answer === true;
}
