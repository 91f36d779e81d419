import { afterEach, expect, it, vi } from 'vitest';
import { listKeys } from '../../src/cli/commands/key.ts';
import { wait } from '../../src/cli/commands/wait.ts';
import { Input } from '../../src/cli/input/input.ts';
import { loadCommands } from '../../src/cli/parse/commands.ts';
import { json, startForeignService } from '../plain/foreign-service.ts';

const commands = await loadCommands();

afterEach(() => {
  vi.restoreAllMocks();
});

it.each([
  [{}, '--for route needs a CIDR; example:'],
  [{ network: '10.0.0' }, '--for route needs a CIDR, "10.0.0" is not one; example:'],
  [{ network: 'office', cidr: '10.0.0.0' }, '--for route needs a CIDR, "10.0.0.0" is not one; example:'],
])('cpn wait --for route %j says what is no CIDR', async (given, said) => {
  await expect(wait.run(new Input({ for: 'route', ...given }, wait.flags, {}))).rejects.toThrow(said);
});

it.each([
  [
    {},
    'there is no usable key; create one with "cpn key create"; --all also lists those that are used up or expired\n',
  ],
  [{ all: true }, 'there is no key; create one with "cpn key create"\n'],
])('cpn key list %j of a network without keys does not send to a flag that was given', async (given, said) => {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const service = await startForeignService({
    answers: {
      'GET /api/networks/4711/enrollment-keys': (response) => json(response, 200, { data: [] }),
      'GET /api/networks/4711/enrollment-keys?all=true': (response) => json(response, 200, { data: [] }),
    },
  });
  const environment = { CPN_API_TOKEN: 'token', NO_COLOR: '1', XDG_CONFIG_HOME: '/nowhere' };
  await listKeys.run(new Input({ api: service.url, network: 'office', ...given }, listKeys.flags, environment));
  expect(write.mock.calls.map(([text]) => text).join('')).toBe(said);
});

it('each command with a prompt documents what happens without a terminal', () => {
  const asking = commands.filter(({ flags }) => flags.yes);
  expect(asking.map(({ name }) => name)).toContain('network delete');
  for (const { flags } of asking) expect(flags.yes?.summary).toContain('where there is no terminal');
});
