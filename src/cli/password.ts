import { WrongUsage } from '../core/errors.ts';
import { Secret } from '../core/secret.ts';
import type { Input } from './input.ts';
import { readSecretFile } from './secrets.ts';

/** Whether somebody is there to be asked. */
export function hasTerminal(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/** What a password is asked for with: the flag of its file, and the words of the question. */
interface PasswordQuestion {
  readonly flag: string;
  readonly message: string;
  /** Asked for twice, so that a slip shows. */
  readonly isNew: boolean;
}

const usual: PasswordQuestion = { flag: 'password-file', message: 'Password', isNew: false };

/** The password in the file of a flag, or as it is typed on a terminal. */
export async function obtainPassword(input: Input, question: Partial<PasswordQuestion> = {}): Promise<Secret> {
  const { flag, message, isNew } = { ...usual, ...question };
  const file = input.text(flag);
  if (file !== undefined) return readSecretFile(file, `the ${message.toLowerCase()}`);
  if (!hasTerminal()) throw new WrongUsage(`--${flag} is missing, and there is no terminal to ask on`);
  const password = await ask(message);
  if (isNew && (await ask('The same again')) !== password) throw new WrongUsage('the two passwords differ; try again');
  return new Secret(password);
}

async function ask(message: string): Promise<string> {
  const prompts = await import('@clack/prompts');
  const answer = await prompts.password({ message, output: process.stderr });
  if (typeof answer !== 'string' || answer === '') throw new WrongUsage('no password was given');
  return answer;
}
