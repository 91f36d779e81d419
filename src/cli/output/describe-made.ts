import { printable } from '../../core/errors/index.ts';
import type { Id } from '../../core/map/model.ts';

/** Objects that outlive their user's credentials. Null if the service does not list them. */
interface MadeByUser {
  readonly users: readonly { readonly id: Id; readonly email: string; readonly role: string }[] | null;
  readonly keys:
    | readonly {
        readonly id: Id;
        readonly name: string;
        readonly network: { readonly id: Id; readonly name: string };
      }[]
    | null;
}

const mostNamed = 20;

/** Lists what a stolen credential may have created, with the commands that remove it. */
export function describeMade({ users, keys }: MadeByUser, maker: 'you' | 'the owner'): string[] {
  const userNames = (users ?? []).map(({ id, email, role }) => `${printable(email)} (${id}), ${role}`);
  return [
    ...describe(`users that ${maker} created or gave a role`, userNames, 'cpn user remove USER'),
    ...describe(`usable enrolment keys that ${maker} created`, describeKeys(keys ?? []), 'cpn key revoke NETWORK KEY'),
  ];
}

export function describeKeys(keys: NonNullable<MadeByUser['keys']>): string[] {
  return keys.map(
    ({ id, name, network }) => `${printable(name)} (${id}) of ${printable(network.name)} (${network.id})`,
  );
}

function describe(what: string, names: readonly string[], remedy: string): string[] {
  if (names.length === 0) return [];
  const more = names.length > mostNamed ? `; and ${names.length - mostNamed} more` : '';
  return [`${what}: ${names.slice(0, mostNamed).join('; ')}${more}\nremove what you do not recognise with: ${remedy}`];
}
