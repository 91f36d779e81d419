import { printable, WrongUsage } from '../../core/errors/index.ts';
import { findNetwork, openAdmin } from '../admin.ts';
import { exitCodes } from '../exit-code.ts';
import { confirmByName } from '../input/confirm.ts';
import { apiFlags, jsonFlag, yesFlag } from '../input/flags.ts';
import { bold, green, note, print, printJson } from '../output/output.ts';
import { type Command, theNetwork } from '../parse/command.ts';
import { maxAgeFlag, readMaxAge, requireMaxAge } from '../parse/max-age-flag.ts';
import { prepareRoutes, readRouteFlags } from '../parse/route-flags.ts';
import { refuseTakenName } from './network.ts';

export const updateNetwork: Command = {
  name: 'network update',
  argument: theNetwork,
  summary: 'Change a network; other fields stay as they are',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    ...yesFlag,
    name: { kind: 'text', value: 'NAME', summary: 'new name, up to 120 characters' },
    description: { kind: 'text', value: 'TEXT', summary: 'what the network is for' },
    'add-route': { kind: 'list', value: 'CIDR', summary: 'add an advertised route' },
    'remove-route': { kind: 'list', value: 'CIDR', summary: 'remove an advertised route' },
    route: { kind: 'list', value: 'CIDR', summary: 'replace all advertised routes' },
    routes: { kind: 'switch', summary: '--no-routes: remove all advertised routes' },
    ...maxAgeFlag,
  },
  examples: [
    'cpn network update office --add-route 192.168.60.0/24',
    'cpn network update office --route 192.168.50.0/24 --route 192.168.60.0/24',
    'cpn network update office --max-age 24h',
  ],
  async run(input) {
    const name = input.text('name');
    const description = input.text('description');
    const routes = readRouteFlags(input);
    const map_max_age_seconds = readMaxAge(input);
    const changes = {
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description }),
      ...(map_max_age_seconds !== undefined && { map_max_age_seconds }),
    };
    if (Object.keys(changes).length === 0 && routes === null) {
      throw new WrongUsage(
        'there is nothing to change; give --name, --description, --add-route, --remove-route, --route, --no-routes or --max-age',
      );
    }
    const service = await openAdmin(input);
    if (map_max_age_seconds !== undefined) await requireMaxAge(service);
    const id = await findNetwork(service, input.argument('network') ?? '');
    if (name !== undefined) await refuseTakenName(service, name, id);
    const routeChanges = await prepareRoutes(service, id, routes, input);
    if (routeChanges === null) return exitCodes.failed;
    const network = await service.updateNetwork(id, { ...changes, ...routeChanges });
    if (input.switch('json')) printJson(network);
    else print(`${green('changed')} network ${bold(printable(network.name))} (${network.id})`);
    return exitCodes.done;
  },
};

export const deleteNetwork: Command = {
  name: 'network delete',
  argument: theNetwork,
  summary: 'Delete a network; its peers lose their connections',
  flags: { ...apiFlags, ...jsonFlag, ...yesFlag },
  examples: ['cpn network delete office --yes'],
  async run(input) {
    const service = await openAdmin(input);
    const network = await service.readNetwork(await findNetwork(service, input.argument('network') ?? ''));
    const question = `Delete network ${network.name} with ${network.peers.length} peers?`;
    if (!(await confirmByName(question, [network.name, String(network.id)], input))) return exitCodes.failed;
    await service.deleteNetwork(network.id);
    if (input.switch('json')) printJson({ id: network.id, name: network.name });
    else note(`deleted network ${printable(network.name)} (${network.id})`);
    return exitCodes.done;
  },
};
