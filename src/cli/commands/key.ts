import { findNetwork, openAdmin } from '../admin.ts';
import { apiFlags, type Command, jsonFlag } from '../command.ts';
import { exitCodes } from '../exit-code.ts';
import { note, print, printJson } from '../output.ts';

export const createKey: Command = {
  name: 'key create',
  argument: { usage: '<network>', summary: 'id or name of a network' },
  summary: 'Create an enrolment key; it is shown this once, alone on stdout',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    name: { kind: 'text', value: 'NAME', summary: 'what the key is for' },
    'max-uses': { kind: 'text', value: '1..10', summary: 'how many hosts may join with it', byDefault: '1' },
    'expires-in-hours': { kind: 'text', value: '1..168', summary: 'how long it holds', byDefault: '24' },
  },
  examples: ['cpn key create office --name edge-1 >key'],
  async run(input) {
    const request = {
      name: input.need('name'),
      max_uses: input.number('max-uses', 1, 10) ?? 1,
      expires_in_hours: input.number('expires-in-hours', 1, 168) ?? 24,
    };
    const service = await openAdmin(input);
    const key = await service.createKey(await findNetwork(service, input.argument('network') ?? ''), request);
    if (input.switch('json')) {
      printJson({ id: key.id, enrollment_token: key.enrollment_token, expires_at: key.expires_at });
      return exitCodes.done;
    }
    print(key.enrollment_token);
    note(
      `for ${key.max_uses === 1 ? 'one host' : `${key.max_uses} hosts`}, until ${key.expires_at}; join with: cpn join - --api URL <key`,
    );
    return exitCodes.done;
  },
};
