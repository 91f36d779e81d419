import type { Key } from '../../api/admin-service.ts';
import type { PeerType } from '../../contract/peer.ts';
import { InvalidValue, printable, WrongUsage } from '../../core/errors/index.ts';
import { peerTypes } from '../../core/map/model.ts';
import { parsePrefix } from '../../core/net/cidr.ts';
import { isLoopbackUrl, type ServiceAddress } from '../../core/net/service-address.ts';
import { findNamed, findNetwork, openAdmin, openAdminAt } from '../admin.ts';
import { exitCodes } from '../exit-code.ts';
import { confirm } from '../input/confirm.ts';
import { apiFlags, jsonFlag, yesFlag } from '../input/flags.ts';
import { type Input, parseChoice } from '../input/input.ts';
import { note, print, printJson, printOnlyCopy, table, toJson, warn } from '../output/output.ts';
import { type Command, theNetwork } from '../parse/command.ts';
import { readTagList, requireTags } from '../parse/tag-flags.ts';

export const createKey: Command = {
  name: 'key create',
  argument: theNetwork,
  summary: 'Create an enrolment key; prints it once, alone on stdout',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    name: { kind: 'text', value: 'NAME', summary: 'name of the key, not of the host: cpn join --name' },
    type: {
      kind: 'list',
      value: 'TYPE',
      summary: 'what hosts may join as: origin (a server), admin_device (a laptop or phone) or connector',
      byDefault: 'origin and admin_device',
      choices: peerTypes,
    },
    route: { kind: 'list', value: 'CIDR', summary: 'the only routes that connectors may serve', byDefault: 'any' },
    tag: { kind: 'list', value: 'TAG', summary: 'tags of the hosts that join with it, by which rules select them' },
    'max-uses': { kind: 'text', value: '1..10', summary: 'how many hosts may join with it', byDefault: '1' },
    'expires-in-hours': { kind: 'text', value: '1..168', summary: 'how long it is valid', byDefault: '24' },
    'peer-expires': {
      kind: 'text',
      value: 'TIME',
      summary: 'how long hosts that join with it stay, such as 12h or 90d',
      byDefault: 'for ever',
    },
  },
  examples: [
    'cpn key create office --name web-1 >key',
    'cpn key create office --name edge-1 --type connector --route 192.168.50.0/24 >key',
  ],
  async run(input) {
    const tags = readTagList(input);
    const request = {
      name: input.need('name'),
      max_uses: input.number('max-uses', 1, 10) ?? 1,
      expires_in_hours: input.number('expires-in-hours', 1, 168) ?? 24,
      ...readLimits(input),
      ...readPeerHours(input),
      ...(tags.length > 0 && { tags }),
    };
    const { admin: service, address } = await openAdminAt(input);
    if (request.peer_expires_in_hours !== undefined && !(await service.describes('key-peer-expiry'))) {
      throw new WrongUsage('this control plane does not support the expiry of peers; leave out --peer-expires');
    }
    if (tags.length > 0) await requireTags(service, 'key-tags');
    const network = await findNetwork(service, input.argument('network') ?? '');
    const key = await service.createKey(network, request);
    const unlimited = [...(key.peer_types ? [] : ['types']), ...(request.routes && !key.routes ? ['routes'] : [])];
    if (unlimited.length > 0) {
      warn(
        `this control plane does not limit the ${unlimited.join(' and ')} of a key: its holder can join as any type and serve any route`,
      );
    }
    const { id, enrollment_token, expires_at } = key;
    const isJson = input.switch('json');
    await printOnlyCopy({
      what: `the key ${printable(request.name)} (${id ?? 'of unknown id'})`,
      text: isJson ? toJson({ id, enrollment_token, expires_at }) : enrollment_token,
      revoke: async () => {
        if (id === null) throw new WrongUsage('the control plane did not return its id');
        await service.revokeKey(network, id);
      },
      remedy: `cpn key revoke ${network} ${id ?? printable(request.name)}`,
    });
    if (isJson) return exitCodes.done;
    const uses = key.max_uses === 1 ? 'one host' : `${key.max_uses} hosts`;
    note(`for ${uses}, until ${key.expires_at}; join with: ${describeJoin(address, request.peer_types)}`);
    return exitCodes.done;
  },
};

/** Prompts for the key or reads a file: the key stays out of process lists and shell histories. */
function describeJoin({ url, insecureHttp }: ServiceAddress, types: readonly PeerType[]): string {
  const isShown = process.stdout.isTTY && process.stderr.isTTY;
  const isLocal = isLoopbackUrl(url);
  const api = isLocal ? '--api URL' : `--api ${url}${insecureHttp ? ' --insecure-http' : ''}`;
  const [first] = types;
  const endpoint = first === 'connector' ? ' --endpoint HOST:51820' : '';
  const type = types.includes('origin') ? '' : ` --type ${first}${endpoint}`;
  return isShown
    ? `cpn join ${api}${type}   (paste the key at its prompt, and press Enter)`
    : `cpn join - ${api}${type} <key`;
}

/** Excludes connectors by default: a connector serves routes, and is trusted with their traffic. */
function readLimits(input: Input) {
  const types = input.list('type').map((text) => parseChoice('--type', text, peerTypes));
  const routes = input.list('route').map((text) => parsePrefix(text, '--route'));
  if (routes.length > 0 && !types.includes('connector')) {
    throw new WrongUsage('--route is for connectors; add --type connector');
  }
  const peer_types = types.length > 0 ? [...new Set(types)] : (['origin', 'admin_device'] as const).slice();
  return { peer_types, ...(routes.length > 0 && { routes }) };
}

/** Ten years, as in the contract. */
const mostPeerDays = 3650;

/** The whole hours after which hosts that join with the key expire. */
function readPeerHours(input: Input) {
  const seconds = input.period('peer-expires', 3600, mostPeerDays * 86_400);
  if (seconds === undefined) return {};
  if (seconds % 3600 === 0) return { peer_expires_in_hours: seconds / 3600 };
  throw new InvalidValue('--peer-expires', input.text('peer-expires'), 'is not a number of whole hours', 'such as 12h');
}

export const listKeys: Command = {
  name: 'key list',
  argument: theNetwork,
  summary: 'List the usable enrolment keys of a network, without their values',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    all: { kind: 'switch', summary: 'also list used-up and expired keys' },
  },
  examples: ['cpn key list office', 'cpn key list office --all'],
  async run(input) {
    const service = await openAdmin(input);
    const network = await findNetwork(service, input.argument('network') ?? '');
    const keys = await service.listKeys(network, { all: input.switch('all') });
    if (input.switch('json')) printJson({ keys });
    else if (keys.length === 0) {
      const none = input.switch('all') ? 'there is no key' : 'there is no usable key';
      note(
        `${none}; create one with "cpn key create"${input.switch('all') ? '' : '; --all also lists those that are used up or expired'}`,
      );
    } else
      print(
        table(
          ['id', 'name', 'for', 'used', 'until'],
          keys.map((key) => [
            String(key.id),
            key.name,
            describeLimits(key),
            `${key.uses ?? '?'} of ${key.max_uses ?? '?'}`,
            key.expires_at ?? '-',
          ]),
        ),
      );
    return exitCodes.done;
  },
};

function describeLimits({ peer_types, routes = [], tags = [], peer_expires_in_hours: hours }: Key): string {
  const end = hours === undefined ? [] : [`for ${hours % 24 === 0 ? `${hours / 24}d` : `${hours}h`}`];
  return [...(peer_types ?? ['any type']), ...routes, ...tags.map((tag) => `tag:${tag}`), ...end].join(' ');
}

export const revokeKey: Command = {
  name: 'key revoke',
  argument: {
    usage: '<network> <key>',
    summary: { network: theNetwork.summary, key: 'id or name of one of its keys' },
  },
  summary: 'Revoke an enrolment key; hosts that joined with it stay',
  flags: { ...apiFlags, ...jsonFlag, ...yesFlag },
  examples: ['cpn key revoke office edge-1 --yes'],
  async run(input) {
    const service = await openAdmin(input);
    const network = await findNetwork(service, input.argument('network') ?? '');
    const named = input.argument('key') ?? '';
    const usable = await service.listKeys(network);
    // Among usable keys, a name is often unique.
    const keys = usable.some(({ name }) => name === named) ? usable : await service.listKeys(network, { all: true });
    const key = findNamed(keys, named, 'key');
    if (!(await confirm(`Revoke key ${key.name} (${key.id})?`, input))) return exitCodes.failed;
    await service.revokeKey(network, key.id);
    if (input.switch('json')) printJson({ id: key.id, name: key.name });
    else note(`revoked key ${printable(key.name)} (${key.id})`);
    return exitCodes.done;
  },
};
