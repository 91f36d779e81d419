import { Secret } from '../../core/crypto/secret.ts';
import { printable, WrongUsage } from '../../core/errors/index.ts';
import type { Id } from '../../core/map/model.ts';
import type { Flag } from './flags.ts';
import type { Input } from './input.ts';
import { prompt } from './prompt.ts';
import { readSecretFile } from './secrets.ts';

export function hasTerminal(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

interface PasswordQuestion {
  readonly flag?: string;
  readonly message?: string;
  /** True to prompt twice, against typing errors. */
  readonly isNew?: boolean;
}

export async function obtainPassword(input: Input, question: PasswordQuestion = {}): Promise<Secret> {
  const { flag = 'password-file', message = 'Password', isNew = false } = question;
  const file = input.text(flag);
  if (file !== undefined) return readSecretFile(file, `the ${message.toLowerCase()}`);
  if (!hasTerminal()) throw new WrongUsage(`--${flag} is missing, and there is no terminal to prompt on`);
  const password = await askSecret(message, noPassword);
  if (isNew && (await askSecret('Repeat the password', noPassword)) !== password)
    throw new WrongUsage('the two passwords differ; try again');
  return new Secret(password);
}

const noPassword = 'no password was given';

/** Prompts without an echo. @throws WrongUsage with the text `missing` if the answer is empty */
export async function askSecret(message: string, missing: string): Promise<string> {
  const answer = await prompt('password', { message });
  if (answer === null || answer === '') throw new WrongUsage(missing);
  return answer;
}

export const keepTokensFlag = {
  'keep-tokens': { kind: 'switch', summary: 'keep the personal tokens valid; without it they are revoked' },
} satisfies Readonly<Record<string, Flag>>;

/** Lists the personal tokens that a new password revoked, in one line. */
export function describeRevoked(tokens: readonly { readonly id: Id; readonly name: string }[]): string {
  return `revoked personal tokens: ${tokens.map(({ id, name }) => `${printable(name)} (${id})`).join(', ')}`;
}
