import { expect, it } from 'vitest';
import { type Flags, nameFlags } from '../../../src/cli/input/flags.ts';
import { loadCommands } from '../../../src/cli/parse/commands.ts';
import { Refused } from '../../../src/core/errors/index.ts';

const commands = await loadCommands();

const flagsOf = (name: string): Flags => commands.find((command) => command.name === name)?.flags ?? {};
const said = (command: string, reason: string, status = 422) =>
  nameFlags(new Refused(status, 'creating it', reason, 'correct these values'), flagsOf(command));

it('a refusal of values names the flags of the command, and fields that have none', () => {
  expect(
    said('network create', 'private_cidr: is public; routes.0: is no range; routes[1]: too; vpn_type: no'),
  ).toMatchObject({
    message:
      'creating it was refused (422): --cidr: is public; --route: is no range; --route: too; vpn_type: no; correct these values',
  });
  expect(said('key create', 'No (max_uses: must be 1; peer_types: none; name: is empty)')).toMatchObject({
    message: expect.stringContaining('No (--max-uses: must be 1; --type: none; --name: is empty)'),
  });
  expect(said('network update', 'route_dns.0.domains.1: "x" has one label; give y')).toMatchObject({
    message: expect.stringContaining(': --route-dns: "x" has one label'),
  });
  expect(said('join', 'endpoint: is loopback; peer_type: may not')).toMatchObject({
    message: expect.stringContaining('--endpoint: is loopback; --type: may not'),
  });
});

it('only names of flags are renamed', () => {
  expect(said('join', 'constructor: no')).toMatchObject({ message: expect.stringContaining(': constructor: no') });
  expect(said('user create', 'name: is empty')).toMatchObject({ message: expect.stringContaining(': name: is empty') });
  expect(said('network create', 'routes: no', 409)).toMatchObject({ message: expect.stringContaining(': routes: no') });
});

it('each flag of a field is one of a command', () => {
  for (const field of [
    'add_routes',
    'expires_at',
    'expires_in_days',
    'expires_in_hours',
    'peer_expires_in_hours',
    'remove_routes',
    'route_dns',
  ])
    expect(commands.some(({ name }) => `${(said(name, `${field}: no`) as Error).message}`.includes('): --'))).toBe(
      true,
    );
});
