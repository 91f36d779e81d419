import { Secret } from '../../core/crypto/secret.ts';
import { WrongUsage } from '../../core/errors/index.ts';
import type { Input } from './input.ts';
import { prompt } from './prompt.ts';
import { readSecretFile } from './secrets.ts';

/** True where a prompt is possible. */
export function hasTerminal(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/** The prompt for a password, and the flag of its file. */
interface PasswordQuestion {
  readonly flag?: string;
  readonly message?: string;
  /** Prompted twice, against typing errors. */
  readonly isNew?: boolean;
}

/** The password in the file of a flag, or as it is typed on a terminal. */
export async function obtainPassword(input: Input, question: PasswordQuestion = {}): Promise<Secret> {
  const { flag = 'password-file', message = 'Password', isNew = false } = question;
  const file = input.text(flag);
  if (file !== undefined) return readSecretFile(file, `the ${message.toLowerCase()}`);
  if (!hasTerminal()) throw new WrongUsage(`--${flag} is missing, and there is no terminal to prompt on`);
  const password = await ask(message);
  if (isNew && (await ask('Repeat the password')) !== password)
    throw new WrongUsage('the two passwords differ; try again');
  return new Secret(password);
}

async function ask(message: string): Promise<string> {
  const answer = await prompt('password', { message });
  if (answer === null || answer === '') throw new WrongUsage('no password was given');
  return answer;
}
