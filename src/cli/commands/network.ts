import type { AdminService } from '../../api/admin-service.ts';
import { printable, WrongUsage } from '../../core/errors/index.ts';
import type { Id } from '../../core/map/model.ts';
import { describeAllSkipped } from '../../core/map/skipped-peers.ts';
import { parsePrefix } from '../../core/net/cidr.ts';
import { openAdmin, readPeerHealth, readWholeNetwork, withUsers } from '../admin.ts';
import { exitCodes } from '../exit-code.ts';
import { apiFlags, jsonFlag } from '../input/flags.ts';
import { bold, green, note, print, printJson, table, warn } from '../output/output.ts';
import { findOutdatedProfiles, peersToJson, peerTable, warnOutdated } from '../output/peer-table.ts';
import { type Command, theNetwork } from '../parse/command.ts';
import { readRouteDns, requireRouteDns, routeDnsFlag } from '../parse/route-dns-flag.ts';
import { readEnforcement } from '../rules/open-rules.ts';
import { describeSelfEnroll } from './self-enroll.ts';

export const listNetworks: Command = {
  name: 'network list',
  summary: 'List the networks of the organization',
  flags: { ...apiFlags, ...jsonFlag },
  examples: ['cpn network list'],
  async run(input) {
    const networks = await (await openAdmin(input)).listNetworks();
    if (input.switch('json')) printJson({ networks });
    else if (networks.length === 0) note('there is no network yet; create one with "cpn network create"');
    else print(networkTable(networks));
    return exitCodes.done;
  },
};

/** Shows the domains behind routes only if there are any. */
function networkTable(networks: Awaited<ReturnType<AdminService['listNetworks']>>): string {
  const hasDomains = networks.some(({ route_dns }) => route_dns !== undefined);
  return table(
    ['id', 'name', 'range', 'routes', ...(hasDomains ? ['domains'] : [])],
    networks.map(({ id, name, private_cidr, routes, route_dns = [] }) => [
      ...[String(id), name, private_cidr, routes.join(', ')],
      ...(hasDomains ? [route_dns.flatMap(({ domains }) => domains).join(', ')] : []),
    ]),
  );
}

export const createNetwork: Command = {
  name: 'network create',
  summary: 'Create a private network',
  flags: {
    ...apiFlags,
    ...jsonFlag,
    name: { kind: 'text', value: 'NAME', summary: 'up to 120 characters' },
    cidr: { kind: 'text', value: 'CIDR', summary: 'private range for the addresses of its peers' },
    route: { kind: 'list', value: 'CIDR', summary: 'LAN prefix behind the connectors' },
    'route-dns': routeDnsFlag,
    description: { kind: 'text', value: 'TEXT', summary: 'what the network is for' },
  },
  examples: ['cpn network create --name office --cidr 10.77.0.0/24 --route 192.168.50.0/24'],
  async run(input) {
    const description = input.text('description');
    const route_dns = readRouteDns(input);
    const request = {
      name: input.need('name'),
      private_cidr: parsePrefix(input.need('cidr', 'example: --cidr 10.77.0.0/24'), '--cidr'),
      routes: input.list('route').map((text) => parsePrefix(text, '--route')),
      ...(description !== undefined && { description }),
      ...(route_dns && { route_dns }),
    };
    const service = await openAdmin(input);
    if (route_dns) await requireRouteDns(service);
    await refuseTakenName(service, request.name);
    const network = await service.createNetwork(request);
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
    const network = await withUsers(service, await readWholeNetwork(service, input.argument('network') ?? ''));
    const health = await readPeerHealth(service, network.id);
    const outdated = findOutdatedProfiles(network);
    const enforcement = await readEnforcement(service, network.id);
    if (input.switch('json')) {
      printJson({ ...network, peers: peersToJson(network.peers, health, outdated, enforcement) });
      return exitCodes.done;
    }
    print(
      table(
        ['network', 'id', 'range', 'routes', 'revision'],
        [[network.name, String(network.id), network.private_cidr, network.routes.join(', '), String(network.revision)]],
      ),
    );
    if (network.map_max_age_seconds !== undefined) {
      print(`\nmaximum age of a map on connectors: ${describeSeconds(network.map_max_age_seconds)}`);
    }
    for (const { route, dns_servers, domains } of network.route_dns ?? []) {
      print(
        `\ndomains behind ${printable(route)}: ${printable(domains.join(', '))}; DNS: ${printable(dns_servers.join(', '))}`,
      );
    }
    if (network.self_enroll) print(`\n${describeSelfEnroll(network.self_enroll)}`);
    if (enforcement !== null) print('\nclosed: what no rule allows is denied; "cpn rules show" shows the rules');
    if (network.spread) print('\nhosts spread over equal connectors that masquerade');
    if (network.approval === 'required') print('\nan owner or admin approves new peers: cpn peer approve');
    const relay = network.peers.find(({ id }) => id === network.relay);
    if (relay !== undefined) print(`\nrelay between hosts without an endpoint: ${printable(relay.name)}`);
    print(`\n${peerTable(network.peers, health, { outdated, enforcement })}`);
    warnOutdated(network, outdated);
    for (const skipped of describeAllSkipped(network.skipped_peers)) warn(printable(skipped));
    return exitCodes.done;
  },
};

function describeSeconds(seconds: number): string {
  const unit = (
    [
      [86_400, 'd'],
      [3600, 'h'],
      [60, 'min'],
    ] as const
  ).find(([size]) => seconds % size === 0);
  return unit === undefined ? `${seconds} s` : `${seconds / unit[0]} ${unit[1]}`;
}

/** Commands could not distinguish two networks of one name, which a service may allow. */
export async function refuseTakenName(
  service: Pick<AdminService, 'listNetworks'>,
  name: string,
  except?: Id,
): Promise<void> {
  const namesake = (await service.listNetworks()).find((other) => other.name === name && other.id !== except);
  if (namesake === undefined) return;
  throw new WrongUsage(`--name ${JSON.stringify(name)} is the name of network ${namesake.id}; choose another name`);
}
