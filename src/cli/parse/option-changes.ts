import type { OptionChanges } from '../../app/networks/option-changes.ts';
import { WrongUsage } from '../../core/errors/index.ts';
import { parseProbeTarget } from '../../core/map/options.ts';
import { parsePrefix } from '../../core/net/cidr.ts';
import { parseEndpoint } from '../../core/net/endpoint.ts';
import type { ServiceAddress } from '../../core/net/service-address.ts';
import { apiFlags, type Flag, type Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { readCaFile, readProxy, readServiceAddress } from '../input/service-address.ts';
import {
  listedOptions,
  optionFlags,
  readAllowedRoutes,
  readGivenOptions,
  readMaps,
  readNetworkSecret,
  readProbes,
} from './host-options.ts';

/** Converts a flag of `join` for a network that is already joined. */
function again([name, { option, reset: word, ...flag }]: (typeof listedOptions)[number]): [string, Flag] {
  const summary = word === undefined ? flag.summary : `${flag.summary}; "${word}" for the default`;
  return [name, { ...flag, summary, byDefault: 'unchanged', ...(word !== undefined && { choices: [word] }) }];
}

export const changeFlags: Flags = {
  name: { kind: 'text', value: 'NAME', summary: 'name of this host in the network', byDefault: 'unchanged' },
  endpoint: {
    kind: 'text',
    value: 'HOST:PORT',
    summary: 'where peers can dial this host, "auto", or "none"',
    byDefault: 'unchanged',
    choices: ['auto', 'none'],
  },
  ...Object.fromEntries(listedOptions.map(again)),
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
  'drop-map': { kind: 'list', value: 'ROUTE', summary: 'connector only: serve this route by its own addresses again' },
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
    options: readGivenOptions(input, true),
    allowRoutes: await readAllowedRoutes(input),
    refuseRoutes: input.list('refuse-route').map((text) => parsePrefix(text, '--refuse-route')),
    addProbes: await readProbes(input, 'connector'),
    dropProbes: input.list('drop-probe').map((text) => parseProbeTarget(text, '--drop-probe')),
    addMaps: await readMaps(input, 'connector'),
    dropMaps: input.list('drop-map').map((text) => parsePrefix(text, '--drop-map')),
    ...(input.text('network-secret-file') !== undefined && {
      networkSecret:
        input.text('network-secret-file') === optionFlags['network-secret-file'].reset
          ? null
          : await readNetworkSecret(input),
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
