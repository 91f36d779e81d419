import { printable } from '../../core/errors.ts';
import { findNamed, openAdmin } from '../admin.ts';
import { apiFlags, type Command, jsonFlag, yesFlag } from '../command.ts';
import { confirm } from '../confirm.ts';
import { exitCodes } from '../exit-code.ts';
import { note, print, printJson, printOnlyCopy, table, toJson } from '../output.ts';

export const listTokens: Command = {
  name: 'token list',
  summary: 'List your personal tokens, without their values',
  flags: { ...apiFlags, ...jsonFlag },
  examples: ['cpn token list'],
  async run(input) {
    const tokens = await (await openAdmin(input)).listTokens();
    if (input.switch('json')) printJson({ tokens });
    else if (tokens.length === 0) note('there is no personal token; "cpn token create" makes one');
    else
      print(
        table(
          ['id', 'name', 'since', 'until', 'last used'],
          tokens.map((token) => [
            String(token.id),
            token.name,
            token.created_at,
            token.expires_at ?? '-',
            token.last_used_at ?? 'never',
          ]),
        ),
      );
    return exitCodes.done;
  },
};

export const createToken: Command = {
  name: 'token create',
  summary: 'Make a personal token, which may do what you may; it is shown this once, alone on stdout',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    name: { kind: 'text', value: 'NAME', summary: 'what the token is for' },
    'expires-in-days': { kind: 'text', value: '1..365', summary: 'how long it holds', byDefault: 'until revoked' },
  },
  examples: ['cpn token create --name ci --expires-in-days 90 >token'],
  async run(input) {
    const name = input.need('name');
    const days = input.number('expires-in-days', 1, 365);
    const service = await openAdmin(input);
    const token = await service.createToken({ name, ...(days !== undefined && { expires_in_days: days }) });
    const value = token.access_token.reveal();
    const { id, expires_at } = token;
    const isJson = input.switch('json');
    await printOnlyCopy({
      what: `the token ${printable(token.name)} (${id})`,
      text: isJson ? toJson({ id, name: token.name, access_token: value, expires_at }) : value,
      revoke: () => service.deleteToken(id),
      remedy: `cpn token revoke ${id}`,
    });
    if (isJson) return exitCodes.done;
    const until = token.expires_at === null ? 'until it is revoked' : `until ${token.expires_at}`;
    note(`holds ${until}; use it as CPN_API_TOKEN=file:token, or with: cpn login --api URL --token-file token`);
    return exitCodes.done;
  },
};

export const revokeToken: Command = {
  name: 'token revoke',
  argument: { usage: '<token>', summary: 'id or name of one of your personal tokens' },
  summary: 'Make a personal token useless',
  flags: { ...apiFlags, ...jsonFlag, ...yesFlag },
  examples: ['cpn token revoke ci --yes'],
  async run(input) {
    const service = await openAdmin(input);
    const { id, name } = findNamed(await service.listTokens(), input.argument('token') ?? '', 'token');
    if (!(await confirm(`Revoke token ${name} (${id})?`, input))) return exitCodes.failed;
    await service.deleteToken(id);
    if (input.switch('json')) printJson({ id, name });
    else note(`revoked token ${printable(name)} (${id})`);
    return exitCodes.done;
  },
};
