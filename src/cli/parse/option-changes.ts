import type { OptionChanges } from '../../app/networks/option-changes.ts';
import { WrongUsage } from '../../core/errors/index.ts';
import type { Options } from '../../core/map/options.ts';
import { parseProbeTarget } from '../../core/map/probe-target.ts';
import { parsePrefix } from '../../core/net/cidr.ts';
import { parseEndpoint } from '../../core/net/endpoint.ts';
import type { ServiceAddress } from '../../core/net/service-address.ts';
import { readCaFile } from '../input/ca-file.ts';
import { apiFlags, type Flag, type Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { readProxy } from '../input/proxy.ts';
import { readServiceAddress } from '../input/service-address.ts';
import {
  longestKeyLife,
  optionFlags,
  readAllowedRoutes,
  readNetworkSecret,
  readPinRule,
  readProbes,
  shortestKeyLife,
} from './host-options.ts';

/** Converts a flag of `join` for a network that is already joined. */
function again([name, flag]: [string, Flag]): [string, Flag] {
  const word = words[name];
  const summary = word === undefined ? flag.summary : `${flag.summary}; "${word}" for the default`;
  return [name, { ...flag, summary, byDefault: 'unchanged', ...(word !== undefined && { choices: [word] }) }];
}

/** The words that reset an option to its default. */
const words: Readonly<Record<string, string>> = {
  'listen-port': 'any',
  mtu: 'auto',
  'rotate-every': 'never',
  'network-secret-file': 'none',
};

/** The options that can change in a joined network. */
export const changeFlags: Flags = {
  name: { kind: 'text', value: 'NAME', summary: 'name of this host in the network', byDefault: 'unchanged' },
  endpoint: {
    kind: 'text',
    value: 'HOST:PORT',
    summary: 'where peers can dial this host, "auto", or "none"',
    byDefault: 'unchanged',
    choices: ['auto', 'none'],
  },
  ...Object.fromEntries(Object.entries(optionFlags).map(again)),
  'refuse-route': { kind: 'list', value: 'CIDR', summary: 'undo --allow-route: apply the guard to this route again' },
  ...apiFlags,
  api: {
    kind: 'text',
    value: 'URL',
    summary:
      'move this network to the control plane at this URL, or at unix:PATH; verifies that it serves the same network first',
    byDefault: 'unchanged; ignores CPN_API',
  },
  proxy: {
    kind: 'text',
    value: 'URL',
    summary: 'reach the control plane through this HTTP proxy; also file:PATH, or "none" for a direct connection',
    byDefault: 'unchanged; ignores CPN_PROXY',
    choices: ['none'],
  },
  'ca-file': {
    kind: 'text',
    value: 'PATH',
    summary:
      'accept a certificate of the control plane only from the CAs in this PEM file, whose content is saved; "none" for the CAs of this machine',
    byDefault: 'unchanged; ignores CPN_CA_FILE',
    choices: ['none'],
  },
  'drop-probe': { kind: 'list', value: 'HOST[:PORT]', summary: 'connector only: stop probing this host' },
};

/** Reads {@link changeFlags}. @throws WrongUsage without any change */
export async function readChanges(input: Input): Promise<OptionChanges> {
  const endpoint = input.text('endpoint');
  const name = input.text('name');
  const service = await readMove(input);
  const proxy = input.isTyped('proxy') ? await readProxy(input) : undefined;
  const authorities = input.isTyped('ca-file') ? await readCaFile(input) : undefined;
  if (service !== undefined && (name !== undefined || endpoint !== undefined)) {
    throw new WrongUsage(
      `--api does not go together with ${name === undefined ? '--endpoint' : '--name'}; set one after the other`,
    );
  }
  const changes: OptionChanges = {
    options: readChangedOptions(input),
    allowRoutes: await readAllowedRoutes(input),
    refuseRoutes: input.list('refuse-route').map((text) => parsePrefix(text, '--refuse-route')),
    addProbes: await readProbes(input, 'connector'),
    dropProbes: input.list('drop-probe').map((text) => parseProbeTarget(text, '--drop-probe')),
    ...(input.text('network-secret-file') !== undefined && {
      networkSecret: isWord(input, 'network-secret-file') ? null : await readNetworkSecret(input),
    }),
    ...(endpoint !== undefined && {
      endpoint: endpoint === 'auto' ? endpoint : endpoint === 'none' ? null : parseEndpoint(endpoint, '--endpoint'),
    }),
    ...(name !== undefined && { name }),
    ...(service !== undefined && { service }),
    ...(proxy !== undefined && { proxy }),
    ...(authorities !== undefined && { authorities }),
  };
  const { options, ...others } = changes;
  const isNothing = Object.values(others).every((each) => Array.isArray(each) && each.length === 0);
  if (Object.keys(options).length === 0 && isNothing) {
    throw new WrongUsage('no option to change was given; "cpn set --help" lists them');
  }
  return changes;
}

/** Ignores CPN_API: it selects the control plane of all commands, but does not move a network. */
async function readMove(input: Input): Promise<ServiceAddress | undefined> {
  return input.isTyped('api') ? readServiceAddress(input) : undefined;
}

function readChangedOptions(input: Input): OptionChanges['options'] {
  const read = <Value>(flag: string, value: () => Value) => (isWord(input, flag) ? null : value());
  const given: { -readonly [Name in keyof Options]?: Options[Name] | undefined } = {
    listenPort: read('listen-port', () => input.number('listen-port', 1, 65535)),
    mtu: read('mtu', () => input.number('mtu', 576, 9000)),
    acceptRoutes: input.choice('accept-routes'),
    masquerade: input.choice('masquerade'),
    hosts: input.choice('hosts'),
    pin: input.text('pin') === undefined ? undefined : readPinRule(input),
    openFirewall: input.choice('open-firewall'),
    strictTunnel: input.choice('strict-tunnel'),
    allowIpv6Outside: input.choice('allow-ipv6-outside'),
    rotateEvery: read('rotate-every', () => input.period('rotate-every', shortestKeyLife, longestKeyLife)),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function isWord(input: Input, flag: string): boolean {
  return input.text(flag) === words[flag];
}
