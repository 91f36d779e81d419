import type { OptionChanges } from '../app/option-changes.ts';
import { WrongUsage } from '../core/errors.ts';
import type { Options } from '../core/model.ts';
import type { Flag, Flags } from './command.ts';
import {
  longestKeyLife,
  optionFlags,
  readAllowedRoutes,
  readNetworkSecret,
  readPinRule,
  readProbes,
  shortestKeyLife,
} from './host-options.ts';
import type { Input } from './input.ts';

/** A flag of `join` for a network that is joined already. */
function again([name, flag]: [string, Flag]): [string, Flag] {
  const word = words[name];
  const summary = word === undefined ? flag.summary : `${flag.summary}; "${word}" as before it was set`;
  return [name, { ...flag, summary, byDefault: 'as it is', ...(word !== undefined && { choices: [word] }) }];
}

/** What stands for no value of one's own. */
const words: Readonly<Record<string, string>> = {
  'listen-port': 'any',
  mtu: 'auto',
  'rotate-every': 'never',
  'network-secret-file': 'none',
};

/** What may be otherwise in a network that this host has joined. */
export const changeFlags: Flags = {
  name: { kind: 'text', value: 'NAME', summary: 'name of this host in the network', byDefault: 'as it is' },
  endpoint: {
    kind: 'text',
    value: 'HOST:PORT',
    summary: 'where peers can dial this host, "auto", or "none"',
    byDefault: 'as it is',
    choices: ['auto', 'none'],
  },
  ...Object.fromEntries(Object.entries(optionFlags).map(again)),
  'refuse-route': { kind: 'list', value: 'CIDR', summary: 'let the guard judge this route again' },
  'drop-probe': { kind: 'list', value: 'HOST[:PORT]', summary: 'as a connector, probe this host no more' },
};

/** What the flags say; @throws WrongUsage where they say nothing */
export async function readChanges(input: Input): Promise<OptionChanges> {
  const [{ parseEndpoint }, { parsePrefix }, { parseProbeTarget }] = await Promise.all([
    import('../core/endpoint.ts'),
    import('../core/cidr.ts'),
    import('../core/probe-target.ts'),
  ]);
  const endpoint = input.text('endpoint');
  const name = input.text('name');
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
  };
  const { options, ...others } = changes;
  const isNothing = Object.values(others).every((each) => Array.isArray(each) && each.length === 0);
  if (Object.keys(options).length === 0 && isNothing) {
    throw new WrongUsage('there is nothing to change; "cpn set --help" lists what can be');
  }
  return changes;
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
    rotateEvery: read('rotate-every', () => input.period('rotate-every', shortestKeyLife, longestKeyLife)),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function isWord(input: Input, flag: string): boolean {
  return input.text(flag) === words[flag];
}
