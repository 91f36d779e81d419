import type { AdminService, Network } from '../../api/admin-service.ts';
import { printable, WrongUsage } from '../../core/errors/index.ts';
import { findNetwork, openAdmin } from '../admin.ts';
import { exitCodes } from '../exit-code.ts';
import { confirmByName } from '../input/confirm.ts';
import { apiFlags, jsonFlag, yesFlag } from '../input/flags.ts';
import { parseChoice } from '../input/input.ts';
import { bold, endStep, green, note, print, printJson, progress, warn } from '../output/output.ts';
import { awaitPending, noteDeletion } from '../output/pending-hosts.ts';
import { type Command, theNetwork } from '../parse/command.ts';
import { maxAgeFlag, readMaxAge, requireMaxAge } from '../parse/max-age-flag.ts';
import { readRouteDns, requireRouteDns, routeDnsFlag } from '../parse/route-dns-flag.ts';
import { prepareRoutes, readRouteFlags } from '../parse/route-flags.ts';
import { refuseTakenName } from './network.ts';
import { mergeSelfEnroll, readSelfEnroll, requireSelfEnroll, selfEnrollFlags } from './self-enroll.ts';

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
    'route-dns': {
      ...routeDnsFlag,
      summary: `replace all: ${routeDnsFlag.summary}; "none" removes all`,
      choices: ['none'],
    },
    ...maxAgeFlag,
    ...selfEnrollFlags,
    spread: {
      kind: 'switch',
      summary: 'spread hosts over equal connectors that masquerade; --no-spread: use the first',
    },
    approval: {
      kind: 'text',
      value: 'required|off',
      summary: 'whether an owner or admin approves new peers; peers of the network stay in it',
      choices: ['required', 'off'],
    },
  },
  examples: [
    'cpn network update office --add-route 192.168.60.0/24',
    'cpn network update office --route 192.168.50.0/24 --route 192.168.60.0/24',
    'cpn network update office --max-age 24h',
    'cpn network update office --spread',
    'cpn network update office --self-enroll member,viewer --self-enroll-limit 3 --reauth 24h',
    'cpn network update office --approval required',
    'cpn network update office --route-dns 192.168.50.0/24=192.168.50.53,corp.example',
  ],
  async run(input) {
    const name = input.text('name');
    const description = input.text('description');
    const routes = readRouteFlags(input);
    const map_max_age_seconds = readMaxAge(input);
    const spread = input.choice('spread');
    const route_dns = readRouteDns(input);
    const selfEnroll = readSelfEnroll(input);
    const given = input.text('approval');
    const approval = given === undefined ? undefined : parseChoice('--approval', given, ['required', 'off'] as const);
    const changes = {
      ...(approval !== undefined && { approval }),
      ...(spread !== undefined && { spread }),
      ...(route_dns && { route_dns }),
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description }),
      ...(map_max_age_seconds !== undefined && { map_max_age_seconds }),
    };
    if (Object.keys(changes).length === 0 && routes === null && selfEnroll === undefined) {
      throw new WrongUsage(
        'there is nothing to change; give --name, --description, --add-route, --remove-route, --route, --no-routes, --route-dns, --max-age, --self-enroll, --reauth, --spread or --approval',
      );
    }
    const service = await openAdmin(input);
    if (map_max_age_seconds !== undefined) await requireMaxAge(service);
    if (spread !== undefined) await requireSpread(service);
    if (route_dns) await requireRouteDns(service);
    if (selfEnroll) await requireSelfEnroll(service);
    if (approval !== undefined) await requireApproval(service);
    const id = await findNetwork(service, input.argument('network') ?? '');
    if (name !== undefined) await refuseTakenName(service, name, id);
    const routeChanges = await prepareRoutes(service, id, routes, input);
    if (routeChanges === null) return exitCodes.failed;
    const own = selfEnroll && { self_enroll: await mergeSelfEnroll(service, id, selfEnroll, input) };
    const network = await service.updateNetwork(id, { ...changes, ...routeChanges, ...own });
    if (input.switch('json')) printJson(network);
    else print(`${green('changed')} network ${bold(printable(network.name))} (${network.id})`);
    if (approval === 'off') await noteWaiting(service, network);
    return exitCodes.done;
  },
};

/** Refuses if the service does not describe spreading: it would ignore the field. */
async function requireSpread(service: AdminService): Promise<void> {
  if (await service.describes('network-spread')) return;
  throw new WrongUsage('this control plane does not spread hosts over connectors; leave out --spread');
}

/** Peers that wait stay out of the network until they are approved. */
async function noteWaiting(service: AdminService, { id }: Pick<Network, 'id'>): Promise<void> {
  const waiting = (await service.listPeersOut(id)).filter(({ awaiting_approval }) => awaiting_approval !== undefined);
  if (waiting.length > 0)
    note(`peers that still wait for approval: ${waiting.length}; to approve one: cpn peer approve ${id} PEER`);
}

/** Refuses if the service does not describe approval: it would ignore the field. */
async function requireApproval(service: AdminService): Promise<void> {
  if (await service.describes('network-approval')) return;
  throw new WrongUsage('this control plane does not approve peers; leave out --approval');
}

/** Seconds: two reports of the deletion are 30 s apart. */
const usualWait = 45;

export const deleteNetwork: Command = {
  name: 'network delete',
  argument: theNetwork,
  summary: 'Delete a network; its hosts take their tunnels down',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    ...yesFlag,
    wait: {
      kind: 'text',
      value: 'SECONDS',
      summary: 'time for the hosts to take their tunnels down, 0 to 60',
      byDefault: String(usualWait),
    },
  },
  examples: ['cpn network delete office --yes'],
  async run(input) {
    const patience = input.number('wait', 0, 60) ?? usualWait;
    const service = await openAdmin(input);
    const network = await service.readNetwork(await findNetwork(service, input.argument('network') ?? ''));
    const question = `Delete network ${network.name}?`;
    if (!input.switch('yes')) note(describeCut(network));
    if (!(await confirmByName(question, [network.name, String(network.id)], input))) return exitCodes.failed;
    await service.deleteNetwork(network.id);
    const isJson = input.switch('json');
    if (!isJson) note(`deleted network ${printable(network.name)} (${network.id})`);
    const isStated = await service.describes('network-deletion');
    if (!isStated)
      warn('this control plane does not state deletions: hosts keep their tunnels until "cpn leave" there');
    if (!isJson && isStated && patience > 0 && network.peers.length > 0)
      progress(`waiting up to ${patience} s for the hosts to take their tunnels down`);
    const pending = isStated ? await awaitPending(service, network.id, patience) : null;
    endStep(pending?.length === 0 ? 'done' : 'open');
    if (isJson) printJson({ id: network.id, name: network.name, pending });
    else if (network.peers.length > 0) noteDeletion(pending, network.id);
    return exitCodes.done;
  },
};

const mostNames = 20;

function describeCut({ name, private_cidr, peers }: Pick<Network, 'name' | 'private_cidr' | 'peers'>): string {
  const names = peers.slice(0, mostNames).map((peer) => printable(peer.name));
  const more = peers.length > names.length ? ` and ${peers.length - names.length} more` : '';
  const hosts = peers.length === 0 ? 'It has no peer' : `Hosts that lose it: ${names.join(', ')}${more}`;
  return `${hosts}. Connections through the tunnel end, SSH to an address in ${private_cidr} or behind a connector too: have another way to each host of ${printable(name)}.`;
}
