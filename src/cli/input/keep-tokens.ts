import { printable } from '../../core/errors/index.ts';
import type { Id } from '../../core/map/model.ts';
import type { Flag } from './flags.ts';

/** The flag of commands that set a password. */
export const keepTokensFlag = {
  'keep-tokens': { kind: 'switch', summary: 'keep the personal tokens valid; without it they are revoked' },
} satisfies Readonly<Record<string, Flag>>;

/** Lists the personal tokens that a new password revoked, in one line. */
export function describeRevoked(tokens: readonly { readonly id: Id; readonly name: string }[]): string {
  return `revoked personal tokens: ${tokens.map(({ id, name }) => `${printable(name)} (${id})`).join(', ')}`;
}
