import type { ChangePeer } from '../../contract/peer.ts';
import { formatEndpoint, parseEndpoint } from '../../core/endpoint.ts';
import { printable, WrongUsage } from '../../core/errors.ts';
import { findNamed, findNetwork, openAdmin } from '../admin.ts';
import { apiFlags, type Command, jsonFlag, theNetwork, yesFlag } from '../command.ts';
import { confirm } from '../confirm.ts';
import { exitCodes } from '../exit-code.ts';
import type { Input } from '../input.ts';
import { bold, green, note, print, printJson, warn } from '../output.ts';
import { peerTable } from '../peer-table.ts';

const thePeer = { usage: '<network> <peer>', summary: 'id or name of a network, and of a peer in it' } as const;

export const listPeers: Command = {
  name: 'peer list',
  argument: theNetwork,
  summary: 'List the peers of a network',
  flags: { ...apiFlags, ...jsonFlag },
  examples: ['cpn peer list office'],
  async run(input) {
    const service = await openAdmin(input);
    const { peers } = await service.readNetwork(await findNetwork(service, input.argument('network') ?? ''));
    if (input.switch('json')) printJson({ peers });
    else if (peers.length === 0) note('no host has joined yet; "cpn key create" makes a key to join with');
    else print(peerTable(peers));
    return exitCodes.done;
  },
};

export const updatePeer: Command = {
  name: 'peer update',
  argument: thePeer,
  summary: 'Change a peer; what is not named stays as it is',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    name: { kind: 'text', value: 'NAME', summary: 'its new name, up to 120 characters' },
    endpoint: { kind: 'text', value: 'HOST:PORT', summary: 'where other peers reach it; "none" takes it away' },
    route: {
      kind: 'list',
      value: 'CIDR',
      summary: 'serve these routes of the network alone; may be given several times',
    },
    priority: {
      kind: 'text',
      value: '0..1000',
      summary: 'of connectors that are well the one with the highest serves; 0 unless changed',
    },
    routes: { kind: 'switch', summary: 'serve all routes of the network; --no-routes: serve none' },
  },
  examples: ['cpn peer update office edge-1 --endpoint 203.0.113.22:51820'],
  async run(input) {
    const changes = readChanges(input);
    const service = await openAdmin(input);
    const network = await service.readNetwork(await findNetwork(service, input.argument('network') ?? ''));
    const { id } = findNamed(network.peers, input.argument('peer') ?? '', 'peer');
    const peer = await service.updatePeer(network.id, id, changes);
    if (changes.priority !== undefined && changes.priority !== (peer.priority ?? 0)) {
      warn('this service knows no priority: of connectors that are well the one with the lowest id serves');
    }
    if (input.switch('json')) printJson(peer);
    else
      print(
        `${green('changed')} peer ${bold(printable(peer.name))} (${peer.id}) of network ${printable(network.name)}`,
      );
    return exitCodes.done;
  },
};

export const removePeer: Command = {
  name: 'peer remove',
  argument: thePeer,
  summary: 'Take a peer out of a network',
  flags: { ...apiFlags, ...jsonFlag, ...yesFlag },
  examples: ['cpn peer remove office edge-1 --yes'],
  async run(input) {
    const service = await openAdmin(input);
    const network = await service.readNetwork(await findNetwork(service, input.argument('network') ?? ''));
    const peer = findNamed(network.peers, input.argument('peer') ?? '', 'peer');
    if (!(await confirm(`Take ${peer.name} (${peer.address}) out of ${network.name}?`, input))) return exitCodes.failed;
    await service.removePeer(network.id, peer.id);
    if (input.switch('json')) printJson({ id: peer.id, name: peer.name });
    else note(`took peer ${printable(peer.name)} (${peer.id}) out of network ${printable(network.name)}`);
    return exitCodes.done;
  },
};

function readChanges(input: Input): ChangePeer {
  const name = input.text('name');
  const endpoint = input.text('endpoint');
  const routes = readServed(input);
  const priority = input.number('priority', 0, 1000);
  if ([name, endpoint, routes, priority].every((each) => each === undefined)) {
    throw new WrongUsage(
      'there is nothing to change; give --name, --endpoint, --route, --routes, --no-routes or --priority',
    );
  }
  const parsed = endpoint === undefined || endpoint === 'none' ? null : parseEndpoint(endpoint, '--endpoint');
  return {
    ...(name !== undefined && { name }),
    ...(endpoint !== undefined && { endpoint: parsed && formatEndpoint(parsed) }),
    ...(routes !== undefined && { routes }),
    ...(priority !== undefined && { priority }),
  };
}

/** What a connector is to serve: null stands for all; undefined where the flags say nothing. */
function readServed(input: Input): string[] | null | undefined {
  const named = input.list('route');
  const all = input.choice('routes');
  if (all === undefined) return named.length > 0 ? named : undefined;
  if (named.length > 0) throw new WrongUsage('--route excludes --routes and --no-routes; give one of them');
  return all ? null : [];
}
