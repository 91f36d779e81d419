import { printable, WrongUsage } from '../../core/errors.ts';
import { findNetwork, openAdmin } from '../admin.ts';
import { apiFlags, type Command, jsonFlag, theNetwork, yesFlag } from '../command.ts';
import { confirm } from '../confirm.ts';
import { exitCodes } from '../exit-code.ts';
import type { Input } from '../input.ts';
import { bold, green, note, print, printJson } from '../output.ts';

export const updateNetwork: Command = {
  name: 'network update',
  argument: theNetwork,
  summary: 'Change a network; what is not named stays as it is',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    name: { kind: 'text', value: 'NAME', summary: 'its new name, up to 120 characters' },
    description: { kind: 'text', value: 'TEXT', summary: 'what the network is for' },
    route: { kind: 'list', value: 'CIDR', summary: 'all of its routes from now on; may be given several times' },
    routes: { kind: 'switch', summary: '--no-routes: it advertises none' },
  },
  examples: ['cpn network update office --route 192.168.50.0/24 --route 192.168.60.0/24'],
  async run(input) {
    const name = input.text('name');
    const description = input.text('description');
    const routes = readRoutes(input);
    const changes = {
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description }),
      ...(routes && { routes }),
    };
    if (Object.keys(changes).length === 0) {
      throw new WrongUsage('there is nothing to change; give --name, --description, --route or --no-routes');
    }
    const service = await openAdmin(input);
    const id = await findNetwork(service, input.argument('network') ?? '');
    const network = await service.updateNetwork(id, changes);
    if (input.switch('json')) printJson(network);
    else print(`${green('changed')} network ${bold(printable(network.name))} (${network.id})`);
    return exitCodes.done;
  },
};

export const deleteNetwork: Command = {
  name: 'network delete',
  argument: theNetwork,
  summary: 'Delete a network; its peers lose each other',
  flags: { ...apiFlags, ...jsonFlag, ...yesFlag },
  examples: ['cpn network delete office --yes'],
  async run(input) {
    const service = await openAdmin(input);
    const network = await service.readNetwork(await findNetwork(service, input.argument('network') ?? ''));
    const question = `Delete network ${network.name} with ${network.peers.length} peers?`;
    if (!(await confirm(question, input))) return exitCodes.failed;
    await service.deleteNetwork(network.id);
    if (input.switch('json')) printJson({ id: network.id, name: network.name });
    else note(`deleted network ${printable(network.name)} (${network.id})`);
    return exitCodes.done;
  },
};

/** All routes as `--route` and `--no-routes` say; undefined where they say nothing. */
function readRoutes(input: Input): string[] | undefined {
  const routes = input.list('route');
  if (input.switch('routes', true)) return routes.length > 0 ? routes : undefined;
  if (routes.length > 0) throw new WrongUsage('--route and --no-routes exclude each other; give one of them');
  return [];
}
