import { printable } from '../../core/errors.ts';
import { describeAllSkipped } from '../../core/skipped-peers.ts';
import { findNetwork, openAdmin } from '../admin.ts';
import { apiFlags, type Command, jsonFlag, theNetwork } from '../command.ts';
import { exitCodes } from '../exit-code.ts';
import { bold, green, note, print, printJson, table, warn } from '../output.ts';
import { peerTable } from '../peer-table.ts';

export const listNetworks: Command = {
  name: 'network list',
  summary: 'List the networks of the organisation',
  flags: { ...apiFlags, ...jsonFlag },
  examples: ['cpn network list'],
  async run(input) {
    const networks = await (await openAdmin(input)).listNetworks();
    if (input.switch('json')) printJson({ networks });
    else if (networks.length === 0) note('there is no network yet; "cpn network create" makes one');
    else
      print(
        table(
          ['id', 'name', 'range', 'routes'],
          networks.map((each) => [String(each.id), each.name, each.private_cidr, each.routes.join(', ')]),
        ),
      );
    return exitCodes.done;
  },
};

export const createNetwork: Command = {
  name: 'network create',
  summary: 'Create a private network',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    name: { kind: 'text', value: 'NAME', summary: 'up to 120 characters' },
    cidr: { kind: 'text', value: 'CIDR', summary: 'the private range its peers get their addresses from' },
    route: { kind: 'list', value: 'CIDR', summary: 'a network behind the connectors; may be given several times' },
    description: { kind: 'text', value: 'TEXT', summary: 'what the network is for' },
  },
  examples: ['cpn network create --name office --cidr 10.77.0.0/24 --route 192.168.50.0/24'],
  async run(input) {
    const description = input.text('description');
    const request = {
      name: input.need('name'),
      private_cidr: input.need('cidr', 'name the range of its addresses, like --cidr 10.77.0.0/24'),
      routes: input.list('route'),
      ...(description !== undefined && { description }),
    };
    const network = await (await openAdmin(input)).createNetwork(request);
    if (input.switch('json')) printJson(network);
    else print(`${green('created')} network ${bold(printable(network.name))} (${network.id}), ${network.private_cidr}`);
    return exitCodes.done;
  },
};

export const showNetwork: Command = {
  name: 'network show',
  argument: theNetwork,
  summary: 'Show a network and its peers',
  flags: { ...apiFlags, ...jsonFlag },
  examples: ['cpn network show office'],
  async run(input) {
    const service = await openAdmin(input);
    const network = await service.readNetwork(await findNetwork(service, input.argument('network') ?? ''));
    if (input.switch('json')) {
      printJson(network);
      return exitCodes.done;
    }
    print(
      table(
        ['network', 'id', 'range', 'routes', 'revision'],
        [[network.name, String(network.id), network.private_cidr, network.routes.join(', '), String(network.revision)]],
      ),
    );
    print(`\n${peerTable(network.peers)}`);
    for (const skipped of describeAllSkipped(network.skipped_peers)) warn(printable(skipped));
    return exitCodes.done;
  },
};
