import { WrongUsage } from '../core/errors.ts';
import { Secret } from '../core/secret.ts';
import type { Input } from './input.ts';
import { readSecretFile } from './secrets.ts';

/** Whether somebody is there to be asked. */
export function hasTerminal(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/** The password in `--password-file`, or as it is typed on a terminal: a new one twice, so that a slip shows. */
export async function obtainPassword(input: Input, { isNew = false } = {}): Promise<Secret> {
  const file = input.text('password-file');
  if (file !== undefined) return readSecretFile(file, 'the password');
  if (!hasTerminal()) throw new WrongUsage('--password-file is missing, and there is no terminal to ask on');
  const password = await ask('Password');
  if (isNew && (await ask('The same again')) !== password) throw new WrongUsage('the two passwords differ; try again');
  return new Secret(password);
}

async function ask(message: string): Promise<string> {
  const prompts = await import('@clack/prompts');
  const answer = await prompts.password({ message, output: process.stderr });
  if (typeof answer !== 'string' || answer === '') throw new WrongUsage('no password was given');
  return answer;
}
