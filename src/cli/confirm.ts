import type { Input } from './input.ts';

/** Asks before something is destroyed, on a terminal and without `--yes`; anywhere else the answer is yes. */
export async function confirm(question: string, input: Input): Promise<boolean> {
  if (input.switch('yes') || !process.stdin.isTTY || !process.stderr.isTTY) return true;
  const prompts = await import('@clack/prompts');
  const answer = await prompts.confirm({ message: question, initialValue: false, output: process.stderr });
  return answer === true;
}
