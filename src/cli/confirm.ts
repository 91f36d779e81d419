import { printable } from '../core/errors.ts';
import type { Input } from './input.ts';
import { note } from './output.ts';

/** Asks before something is destroyed, on a terminal and without `--yes`; anywhere else the answer is yes. */
export async function confirm(question: string, input: Input): Promise<boolean> {
  if (input.switch('yes') || !process.stdin.isTTY || !process.stderr.isTTY) return true;
  const prompts = await import('@clack/prompts');
  const answer = await prompts.confirm({ message: printable(question), initialValue: false, output: process.stderr });
  if (answer !== true) note('nothing was done');
  return answer === true;
}
