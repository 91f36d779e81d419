import type { AdminService, KeyOfNetwork, User } from '../../api/admin-service.ts';
import type { Role } from '../../contract/auth.ts';
import { printable, WrongUsage } from '../../core/errors/index.ts';
import { findNamed, openAdmin, openAdminAt } from '../admin.ts';
import { exitCodes } from '../exit-code.ts';
import { confirmByName } from '../input/confirm.ts';
import { apiFlags, jsonFlag, yesFlag } from '../input/flags.ts';
import { parseChoice } from '../input/input.ts';
import { ownPasswordFlag, withOwnPassword } from '../input/own-password.ts';
import { describeRevoked, keepTokensFlag, obtainPassword } from '../input/password.ts';
import { describeKeys, describeMade } from '../output/describe-made.ts';
import { bold, green, note, print, printJson, table } from '../output/output.ts';
import type { Command } from '../parse/command.ts';
import {
  allNetworksFlag,
  changesLimit,
  createLimitFormat,
  networkLimitFlags,
  readLimitChange,
  readNetworkLimit,
} from '../parse/network-limit-flags.ts';
import { keepSession } from './session.ts';

const theUser = { usage: '<user>', summary: 'id or e-mail address of a user' } as const;

const roles: readonly Role[] = ['owner', 'admin', 'member', 'viewer'];

const keepKeysFlag = {
  'keep-keys': {
    kind: 'switch',
    summary:
      'keep the enrolment keys of the user usable; without it, those that it could not create any more are revoked',
  },
} as const;

const ownPassword = { flag: 'own-password-file', field: 'current_password' } as const;

export const listUsers: Command = {
  name: 'user list',
  summary: 'List the users of the organization',
  flags: { ...apiFlags, ...jsonFlag },
  examples: ['cpn user list'],
  async run(input) {
    const service = await openAdmin(input);
    const users = await service.listUsers();
    if (input.switch('json')) {
      printJson({ users });
      return exitCodes.done;
    }
    const { isAny, format } = await createLimitFormat(service, users);
    const rows = users.map((user) => {
      const { id, email, role, has_second_factor: has, created_at } = user;
      const factor = has === undefined ? '-' : has ? 'yes' : 'no';
      return [String(id), email, role, factor, created_at, ...(isAny ? [format(user)] : [])];
    });
    print(table(['id', 'e-mail', 'role', 'second factor', 'since', ...(isAny ? ['networks'] : [])], rows));
    return exitCodes.done;
  },
};

export const createUser: Command = {
  name: 'user create',
  summary: 'Create a user; prompts for the passwords on a terminal',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    email: { kind: 'text', value: 'EMAIL', summary: 'e-mail address that the user logs in with' },
    role: { kind: 'text', value: 'ROLE', summary: 'owner, admin, member or viewer', choices: roles },
    ...networkLimitFlags,
    'password-file': { kind: 'text', value: 'PATH', summary: 'file that holds only the password of the user' },
    ...ownPasswordFlag,
  },
  examples: [
    'cpn user create --email you@example.net --role member --password-file password',
    'cpn user create --email you@example.net --role member --network office --password-file password',
  ],
  async run(input) {
    const email = input.need('email');
    const role = parseChoice('--role', input.need('role'), roles);
    const service = await openAdmin(input);
    const networks = await readNetworkLimit(service, input, 'user-networks');
    const limit = networks && { networks };
    const fields = { email, role, ...limit, password: await obtainPassword(input, { isNew: true }) };
    const proof = { ...ownPassword, what: 'a user' };
    const user = await withOwnPassword(input, proof, (own) => service.createUser({ ...fields, current_password: own }));
    if (input.switch('json')) printJson(user);
    else
      print(`${green('created')} user ${bold(printable(user.email))} (${user.id}), ${await describe(service, user)}`);
    return exitCodes.done;
  },
};

export const updateUser: Command = {
  name: 'user update',
  argument: theUser,
  summary: 'Change the role of a user, or the networks to which it is limited; owners only',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    role: { kind: 'text', value: 'ROLE', summary: 'owner, admin, member or viewer', choices: roles },
    ...networkLimitFlags,
    ...allNetworksFlag,
    ...ownPasswordFlag,
    ...keepKeysFlag,
  },
  examples: ['cpn user update you@example.net --role admin', 'cpn user update you@example.net --network office'],
  async run(input) {
    const named = input.text('role');
    const isLimited = changesLimit(input);
    if (named === undefined && !isLimited)
      throw new WrongUsage('there is nothing to change; give --role, --network or --all-networks');
    const role = named === undefined ? undefined : parseChoice('--role', named, roles);
    const service = await openAdmin(input);
    const networks = await readLimitChange(service, input);
    const { id } = await findUser(service, input.argument('user'));
    const changes = {
      ...(role !== undefined && { role }),
      ...(networks !== undefined && { networks }),
      ...(input.switch('keep-keys') && { keep_keys: true }),
    };
    const proof = { ...ownPassword, what: 'a higher role or more networks' };
    const user = await withOwnPassword(input, proof, (own) =>
      service.updateUser(id, { ...changes, current_password: own }),
    );
    if (input.switch('json')) printJson(user);
    else
      print(`${green('changed')} user ${bold(printable(user.email))} (${user.id}), ${await describe(service, user)}`);
    if (!input.switch('json')) noteKeysRevoked(user.keys_revoked ?? null);
    return exitCodes.done;
  },
};

export const changePassword: Command = {
  name: 'user passwd',
  summary: 'Change your password, end your other sessions and revoke your tokens; prompts on a terminal',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    ...keepTokensFlag,
    'password-file': { kind: 'text', value: 'PATH', summary: 'file that holds only the current password' },
    'new-password-file': { kind: 'text', value: 'PATH', summary: 'file that holds only the new password' },
  },
  examples: ['cpn user passwd', 'cpn user passwd --password-file old --new-password-file new'],
  async run(input) {
    const { admin: service, address } = await openAdminAt(input);
    const current = await obtainPassword(input, { message: 'Current password' });
    const next = await obtainPassword(input, { flag: 'new-password-file', message: 'New password', isNew: true });
    const {
      access_token: token,
      expires_at,
      ...change
    } = await service.changePassword({
      current_password: current,
      new_password: next,
      ...(input.switch('keep-tokens') && { keep_tokens: true }),
    });
    if (token) await keepSession(input, address, { token, expiresAt: expires_at ?? null });
    if (input.switch('json')) {
      printJson(change);
      return exitCodes.done;
    }
    const { tokens_revoked: tokens, users_made: users, keys_made: keys } = change;
    note('changed your password; your other sessions ended');
    if (tokens === null) note('the control plane does not report revoked tokens; check with "cpn token list"');
    else if (tokens.length > 0) note(describeRevoked(tokens));
    for (const line of describeMade({ users, keys }, 'you')) note(line);
    return exitCodes.done;
  },
};

export const removeUser: Command = {
  name: 'user remove',
  argument: theUser,
  summary: 'Remove a user; revokes their sessions, tokens and usable enrolment keys',
  flags: { ...apiFlags, ...jsonFlag, ...yesFlag, ...keepKeysFlag },
  examples: ['cpn user remove you@example.net --yes'],
  async run(input) {
    const service = await openAdmin(input);
    const { id, email, role } = await findUser(service, input.argument('user'));
    if (!(await confirmByName(`Remove user ${email}, ${role}?`, [email, String(id)], input))) return exitCodes.failed;
    const { keys_revoked: keys } = await service.deleteUser(id, { keep_keys: input.switch('keep-keys') });
    if (input.switch('json')) {
      printJson({ id, email, ...(keys && { keys_revoked: keys }) });
      return exitCodes.done;
    }
    note(`removed user ${printable(email)} (${id})`);
    noteKeysRevoked(keys);
    return exitCodes.done;
  },
};

export const resetFactors: Command = {
  name: 'user reset-factors',
  argument: theUser,
  summary: 'Remove the second factors of a user that lost them; needs a login at most 5 minutes ago',
  flags: { ...apiFlags, ...jsonFlag, ...yesFlag },
  examples: ['cpn user reset-factors you@example.net --yes'],
  async run(input) {
    const service = await openAdmin(input);
    const { id, email } = await findUser(service, input.argument('user'));
    const question = `Remove the second factors of ${email}? Its password then suffices.`;
    if (!(await confirmByName(question, [email, String(id)], input))) return exitCodes.failed;
    const { factors_removed } = await service.resetFactors(id);
    if (input.switch('json')) printJson({ id, email, factors_removed });
    else if (factors_removed === 0) note(`user ${printable(email)} (${id}) has no second factor`);
    else note(`removed the second factors of user ${printable(email)} (${id}): ${factors_removed ?? 'all'}`);
    return exitCodes.done;
  },
};

export const linkUser: Command = {
  name: 'user link',
  argument: theUser,
  summary: 'Let a user log in as a user of the issuer of single sign-on, whose groups then give the role',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    subject: {
      kind: 'text',
      value: 'SUBJECT',
      summary: 'the user at the issuer; a refused login has it in "cpn audit" as its subject',
    },
    ...ownPasswordFlag,
  },
  examples: ['cpn user link you@example.net --subject 248289761001'],
  async run(input) {
    const service = await openAdmin(input);
    const { id, email } = await findUser(service, input.argument('user'));
    const subject = input.need('subject');
    const proof = { ...ownPassword, what: 'to link the user' };
    await withOwnPassword(input, proof, (own) => service.linkUser(id, { subject, current_password: own }));
    if (input.switch('json')) printJson({ id, email, subject });
    else note(`linked user ${printable(email)} (${id}) to the subject ${printable(subject)}`);
    return exitCodes.done;
  },
};

export const unlinkUser: Command = {
  name: 'user unlink',
  argument: theUser,
  summary: 'Unlink a user from the issuer of single sign-on; its sessions end, and its password stays',
  flags: { ...apiFlags, ...jsonFlag },
  examples: ['cpn user unlink you@example.net'],
  async run(input) {
    const service = await openAdmin(input);
    const { id, email } = await findUser(service, input.argument('user'));
    await service.unlinkUser(id);
    if (input.switch('json')) printJson({ id, email });
    else note(`unlinked user ${printable(email)} (${id})`);
    return exitCodes.done;
  },
};

function noteKeysRevoked(keys: readonly KeyOfNetwork[] | null): void {
  if (keys !== null && keys.length > 0) note(`revoked enrolment keys: ${describeKeys(keys).join('; ')}`);
}

/** The role of a user, and its networks if it is limited. */
async function describe(service: AdminService, user: User): Promise<string> {
  const { isAny, format } = await createLimitFormat(service, [user]);
  return isAny ? `${user.role}, limited to networks: ${printable(format(user))}` : user.role;
}

/** Finds a user by id or e-mail address. */
export async function findUser(service: AdminService, named = ''): Promise<User> {
  const users = (await service.listUsers()).map((user) => ({ ...user, name: user.email }));
  return findNamed(users, named, 'user');
}
