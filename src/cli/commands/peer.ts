import type { AdminService } from '../../api/admin-service.ts';
import type { ChangePeer } from '../../contract/peer.ts';
import { CpnError, printable, WrongUsage } from '../../core/errors/index.ts';
import type { Id } from '../../core/map/model.ts';
import { parsePrefix } from '../../core/net/cidr.ts';
import { formatEndpoint, parseEndpoint } from '../../core/net/endpoint.ts';
import { findNamed, openAdmin, readPeerHealth, readWholeNetwork, withUsers } from '../admin.ts';
import { exitCodes } from '../exit-code.ts';
import { confirmByName } from '../input/confirm.ts';
import { apiFlags, jsonFlag, wideFlag, yesFlag } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { warnOfLosses, warnOfLostRoutes } from '../output/losses.ts';
import { bold, green, note, print, printJson, warn } from '../output/output.ts';
import { findOutdatedProfiles, peersToJson, peerTable, warnOutdated } from '../output/peer-table.ts';
import { awaitPending, notePending, pendingFlags, readPatience } from '../output/pending-hosts.ts';
import { type Command, theNetwork } from '../parse/command.ts';
import { expiresFlag, readExpiry, requireExpiry } from '../parse/expiry-flag.ts';
import { readTags, requireTags, tagFlags } from '../parse/tag-flags.ts';
import { readEnforcement } from '../rules/open-rules.ts';

export const thePeer = {
  usage: '<network> <peer>',
  summary: { network: theNetwork.summary, peer: 'id or name of a peer in it' },
} as const;

export const listPeers: Command = {
  name: 'peer list',
  argument: theNetwork,
  summary: 'List the peers of a network',
  flags: { ...apiFlags, ...jsonFlag, ...wideFlag },
  examples: ['cpn peer list office', 'cpn peer list office --wide'],
  async run(input) {
    const service = await openAdmin(input);
    const network = await withUsers(service, await readWholeNetwork(service, input.argument('network') ?? ''));
    const { id, peers } = network;
    const health = await readPeerHealth(service, id);
    const outdated = findOutdatedProfiles(network);
    const enforcement = await readEnforcement(service, id);
    if (input.switch('json')) printJson({ peers: peersToJson(peers, health, outdated, enforcement) });
    else if (peers.length === 0) note('no host has joined yet; create an enrolment key with "cpn key create"');
    else {
      print(peerTable(peers, health, { outdated, enforcement, isWide: input.switch('wide') }));
      warnOutdated(network, outdated);
    }
    return exitCodes.done;
  },
};

export const updatePeer: Command = {
  name: 'peer update',
  argument: thePeer,
  summary: 'Change a peer; other fields stay as they are',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    name: { kind: 'text', value: 'NAME', summary: 'new name, up to 120 characters' },
    endpoint: { kind: 'text', value: 'HOST:PORT', summary: 'where other peers dial it; "none" removes it' },
    route: { kind: 'list', value: 'CIDR', summary: 'serve only these routes of the network' },
    priority: {
      kind: 'text',
      value: '0..1000',
      summary: 'the healthy connector with the highest priority serves; default 0',
    },
    ...tagFlags,
    routes: { kind: 'switch', summary: 'serve all routes of the network; --no-routes: serve none' },
    ...expiresFlag,
  },
  examples: [
    'cpn peer update office edge-1 --endpoint 203.0.113.22:51820',
    'cpn peer update office laptop --expires 90d',
    'cpn peer update office web-1 --tag web --tag production',
  ],
  async run(input) {
    const changes = readChanges(input);
    const service = await openAdmin(input);
    if (changes.expires_at !== undefined) await requireExpiry(service);
    if (changes.tags !== undefined) await requireTags(service, 'peer-tags');
    const network = await readWholeNetwork(service, input.argument('network') ?? '');
    const known = findNamed(network.peers, input.argument('peer') ?? '', 'peer');
    if (changes.routes !== undefined) warnOfLostRoutes(network, known, changes.routes);
    const peer = await service.updatePeer(network.id, known.id, changes);
    if (changes.priority !== undefined && changes.priority !== (peer.priority ?? 0)) {
      warn('this control plane does not support priorities: the healthy connector with the lowest id serves');
    }
    if (input.switch('json')) {
      printJson(peer);
      return exitCodes.done;
    }
    print(`${green('changed')} peer ${bold(printable(peer.name))} (${peer.id}) of network ${printable(network.name)}`);
    if (typeof changes.expires_at === 'string') await noteKeys(service, network.id);
    return exitCodes.done;
  },
};

export const removePeer: Command = {
  name: 'peer remove',
  argument: thePeer,
  summary: 'Remove a peer from a network',
  flags: { ...apiFlags, ...jsonFlag, ...yesFlag, ...pendingFlags },
  examples: ['cpn peer remove office edge-1 --yes'],
  async run(input) {
    const patience = readPatience(input);
    const service = await openAdmin(input);
    const network = await readWholeNetwork(service, input.argument('network') ?? '');
    const peer = findNamed(network.peers, input.argument('peer') ?? '', 'peer');
    warnOfLosses(network, peer);
    const question = `Remove ${peer.name} (${peer.address}) from ${network.name}?`;
    if (!(await confirmByName(question, [peer.name, String(peer.id)], input))) return exitCodes.failed;
    await service.removePeer(network.id, peer.id);
    const isJson = input.switch('json');
    if (!isJson) note(`removed peer ${printable(peer.name)} (${peer.id}) from network ${printable(network.name)}`);
    const pending = await awaitPending(service, network.id, patience);
    if (isJson) printJson({ id: peer.id, name: peer.name, pending });
    else notePending(pending);
    return exitCodes.done;
  },
};

function readChanges(input: Input): ChangePeer {
  const name = input.text('name');
  const endpoint = input.text('endpoint');
  const routes = readServed(input);
  const priority = input.number('priority', 0, 1000);
  const expires_at = readExpiry(input, new Date());
  const tags = readTags(input);
  if ([name, endpoint, routes, priority, expires_at, tags].every((each) => each === undefined)) {
    throw new WrongUsage(
      'there is nothing to change; give --name, --endpoint, --route, --routes, --no-routes, --priority, --tag, --no-tags or --expires',
    );
  }
  const parsed = endpoint === undefined || endpoint === 'none' ? null : parseEndpoint(endpoint, '--endpoint');
  return {
    ...(name !== undefined && { name }),
    ...(endpoint !== undefined && { endpoint: parsed && formatEndpoint(parsed) }),
    ...(routes !== undefined && { routes }),
    ...(priority !== undefined && { priority }),
    ...(expires_at !== undefined && { expires_at }),
    ...(tags !== undefined && { tags }),
  };
}

/** The routes that a connector serves. Null for all, undefined without a flag. */
function readServed(input: Input): string[] | null | undefined {
  const named = input.list('route').map((text) => parsePrefix(text, '--route'));
  const all = input.choice('routes');
  if (all === undefined) return named.length > 0 ? named : undefined;
  if (named.length > 0) throw new WrongUsage('--route excludes --routes and --no-routes; give one of them');
  return all ? null : [];
}

/** Prints the number of usable keys, with which a removed peer can join again; nothing for 0. */
export async function noteKeys(service: AdminService, network: Id): Promise<void> {
  const count = await countKeys(service, network);
  if (count === 0) return;
  const keys = count === null ? 'unknown number' : String(count);
  note(
    `usable enrolment keys: ${keys}; a holder can join again; list them with "cpn key list", revoke with "cpn key revoke"`,
  );
}

/** Null if the service does not report it. */
async function countKeys(service: AdminService, network: Id): Promise<number | null> {
  try {
    return (await service.listKeys(network)).length;
  } catch (error) {
    // The peer was changed regardless.
    if (!(error instanceof CpnError)) throw error;
    return null;
  }
}
