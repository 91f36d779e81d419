import type { Secret } from '../../core/crypto/secret.ts';
import { Refused, WrongUsage } from '../../core/errors/index.ts';
import type { Input } from './input.ts';
import { hasTerminal, obtainPassword } from './password.ts';

interface OwnPassword {
  /** The flag of its file. */
  readonly flag: string;
  /** The field of the request, as a refusal names it. */
  readonly field: string;
  /** The operation that needs the password, for a message. */
  readonly what: string;
}

/** Sends the caller's own password if a flag gives it, or once the control plane requires it. */
export async function withOwnPassword<Result>(
  input: Input,
  { flag, field, what }: OwnPassword,
  request: (password?: Secret) => Promise<Result>,
): Promise<Result> {
  const obtain = () => obtainPassword(input, { flag, message: 'Your own password' });
  if (input.has(flag)) return request(await obtain());
  try {
    return await request();
  } catch (error) {
    if (!(error instanceof Refused && error.fields.some((each) => each.field === field))) throw error;
    if (!hasTerminal()) {
      const remedy = `give --${flag}, or run "cpn login" again`;
      throw new WrongUsage(`${what} needs your password, because your login is more than 5 minutes ago; ${remedy}`);
    }
    return request(await obtain());
  }
}

/** The flag of commands that also need another user's password. */
export const ownPasswordFlag = {
  'own-password-file': {
    kind: 'text',
    value: 'PATH',
    summary: 'file that holds only your own password; needed 5 minutes after your login, prompts on a terminal',
  },
} as const;
