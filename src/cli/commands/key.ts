import { parsePrefix } from '../../core/cidr.ts';
import { InvalidValue, printable, WrongUsage } from '../../core/errors.ts';
import { peerTypes } from '../../core/model.ts';
import { findNamed, findNetwork, openAdmin } from '../admin.ts';
import { apiFlags, type Command, jsonFlag, theNetwork, yesFlag } from '../command.ts';
import { confirm } from '../confirm.ts';
import { exitCodes } from '../exit-code.ts';
import type { Input } from '../input.ts';
import { note, print, printJson, printOnlyCopy, table, toJson, warn } from '../output.ts';

export const createKey: Command = {
  name: 'key create',
  argument: theNetwork,
  summary: 'Create an enrolment key; it is shown this once, alone on stdout',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    name: { kind: 'text', value: 'NAME', summary: 'what the key is for' },
    type: {
      kind: 'list',
      value: 'TYPE',
      summary: 'what hosts may join as, connector, admin_device or origin; may be given several times',
      byDefault: 'origin and admin_device',
      choices: peerTypes,
    },
    route: {
      kind: 'list',
      value: 'CIDR',
      summary: 'a route of the network that connectors may serve, and no others; may be given several times',
      byDefault: 'any',
    },
    'max-uses': { kind: 'text', value: '1..10', summary: 'how many hosts may join with it', byDefault: '1' },
    'expires-in-hours': { kind: 'text', value: '1..168', summary: 'how long it holds', byDefault: '24' },
  },
  examples: [
    'cpn key create office --name web-1 >key',
    'cpn key create office --name edge-1 --type connector --route 192.168.50.0/24 >key',
  ],
  async run(input) {
    const request = {
      name: input.need('name'),
      max_uses: input.number('max-uses', 1, 10) ?? 1,
      expires_in_hours: input.number('expires-in-hours', 1, 168) ?? 24,
      ...readLimits(input),
    };
    const service = await openAdmin(input);
    const network = await findNetwork(service, input.argument('network') ?? '');
    const key = await service.createKey(network, request);
    const unlimited = [...(key.peer_types ? [] : ['types']), ...(request.routes && !key.routes ? ['routes'] : [])];
    if (unlimited.length > 0) {
      warn(
        `this service does not limit the ${unlimited.join(' and ')} of a key: its holder can join as any type and serve any route`,
      );
    }
    const { id, enrollment_token, expires_at } = key;
    const isJson = input.switch('json');
    await printOnlyCopy({
      what: `the key ${printable(request.name)} (${id ?? 'of unknown id'})`,
      text: isJson ? toJson({ id, enrollment_token, expires_at }) : enrollment_token,
      revoke: async () => {
        if (id === null) throw new WrongUsage('the service did not give its id');
        await service.revokeKey(network, id);
      },
      remedy: `cpn key revoke ${network} ${id ?? printable(request.name)}`,
    });
    if (isJson) return exitCodes.done;
    const flag = request.peer_types.includes('origin') ? '' : ` --type ${request.peer_types[0]}`;
    note(
      `for ${key.max_uses === 1 ? 'one host' : `${key.max_uses} hosts`}, until ${key.expires_at}; join with: cpn join - --api URL${flag} <key`,
    );
    return exitCodes.done;
  },
};

/** What hosts may join as with the key. By default no connector: one serves routes, and is trusted with what goes there. */
function readLimits(input: Input) {
  const types = input.list('type').map((text) => {
    const type = peerTypes.find((each) => each === text);
    if (!type) throw new InvalidValue('--type', text, `is none of ${peerTypes.join(', ')}`);
    return type;
  });
  const routes = input.list('route').map((text) => parsePrefix(text, '--route'));
  if (routes.length > 0 && !types.includes('connector')) {
    throw new WrongUsage('--route is for connectors; add --type connector');
  }
  const peer_types = types.length > 0 ? [...new Set(types)] : (['origin', 'admin_device'] as const).slice();
  return { peer_types, ...(routes.length > 0 && { routes }) };
}

export const listKeys: Command = {
  name: 'key list',
  argument: theNetwork,
  summary: 'List the enrolment keys of a network that can be used, without their values',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    all: { kind: 'switch', summary: 'also those that are used up or have expired' },
  },
  examples: ['cpn key list office', 'cpn key list office --all'],
  async run(input) {
    const service = await openAdmin(input);
    const network = await findNetwork(service, input.argument('network') ?? '');
    const keys = await service.listKeys(network, { all: input.switch('all') });
    if (input.switch('json')) printJson({ keys });
    else if (keys.length === 0) {
      const none = input.switch('all') ? 'there is no key' : 'there is no key that can be used';
      note(`${none}; "cpn key create" makes one${input.switch('all') ? '' : ', --all shows the others'}`);
    } else
      print(
        table(
          ['id', 'name', 'for', 'used', 'until'],
          keys.map((key) => [
            String(key.id),
            key.name,
            [...(key.peer_types ?? ['any type']), ...(key.routes ?? [])].join(' '),
            `${key.uses ?? '?'} of ${key.max_uses ?? '?'}`,
            key.expires_at ?? '-',
          ]),
        ),
      );
    return exitCodes.done;
  },
};

export const revokeKey: Command = {
  name: 'key revoke',
  argument: { usage: '<network> <key>', summary: 'id or name of a network, and of a key to it' },
  summary: 'Make an enrolment key useless; hosts that joined with it stay',
  flags: { ...apiFlags, ...jsonFlag, ...yesFlag },
  examples: ['cpn key revoke office edge-1 --yes'],
  async run(input) {
    const service = await openAdmin(input);
    const network = await findNetwork(service, input.argument('network') ?? '');
    const key = findNamed(await service.listKeys(network, { all: true }), input.argument('key') ?? '', 'key');
    if (!(await confirm(`Revoke key ${key.name} (${key.id})?`, input))) return exitCodes.failed;
    await service.revokeKey(network, key.id);
    if (input.switch('json')) printJson({ id: key.id, name: key.name });
    else note(`revoked key ${printable(key.name)} (${key.id})`);
    return exitCodes.done;
  },
};
