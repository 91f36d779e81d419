import type { ChangeNetwork, CreateNetwork, Network, NetworkSummary, RouteDns } from '../../contract/network.ts';
import { loadPublicSuffixes } from '../../core/names/public-suffixes.ts';
import type { Prefix } from '../../core/net/cidr.ts';
import { type Caller, requireAdmitter } from '../domain/caller.ts';
import { readFields } from '../domain/field-rules.ts';
import { permits } from '../domain/network-limit.ts';
import { coveringRoute, parsePrivateRange, parseRoutes } from '../domain/network-rules.ts';
import { ofRoutes, readRouteDns } from '../domain/route-dns.ts';
import { checkExpectedRoutes, readRoutes } from '../domain/route-edits.ts';
import { InvalidRequest, NotFound } from '../errors.ts';
import { toNetwork, toNetworkSummary } from '../push/to-contract.ts';
import { makeNonce } from '../store/changes.ts';
import { insertDeletion, listUnconfirmed } from '../store/deletions.ts';
import * as store from '../store/networks.ts';
import { mapPage, type Slice, type StoredPage } from '../store/page.ts';
import { listEndpoints, listPeers } from '../store/peers/peer-lists.ts';
import { readMapRules } from '../store/rules.ts';
import type { Db } from '../store/tables.ts';
import { transact } from '../store/transact.ts';
import { appendEvents } from './append-events.ts';
import { changedFields, record } from './audit.ts';
import type { Context } from './context.ts';
import { applyReauth } from './devices-of-user.ts';
import { requireAuthor } from './require-author.ts';
import { withRevision } from './with-revision.ts';

export async function listNetworks({ db }: Context, caller: Caller, slice: Slice): Promise<StoredPage<NetworkSummary>> {
  const limit = caller.kind === 'user' ? caller.networks : [caller.networkId];
  return mapPage(await store.listNetworks(db, caller.organizationId, limit, slice), toNetworkSummary);
}

export async function createNetwork(context: Context, caller: Caller, asked: CreateNetwork): Promise<Network> {
  const { range, routes, route_dns } = await readNewNetwork(context, asked);
  const { name, description = '', spread = false } = asked;
  const fields = { name, description, range, routes, spread, route_dns };
  return transact(context.db, async (transaction) => {
    const author = await requireAuthor(context, transaction, caller);
    const now = context.now().toISOString();
    const network = await store.insertNetwork(
      transaction,
      caller.organizationId,
      fields,
      now,
      makeNonce(context.random),
    );
    const { name, description, private_cidr, routes, spread, route_dns } = toNetworkSummary(network);
    await record(transaction, author, {
      action: 'network.create',
      target: targetOf(network),
      details: { name, description, private_cidr, routes, ...(spread && { spread }), ...(route_dns && { route_dns }) },
    });
    return toNetwork(network, []);
  });
}

interface NewNetwork {
  readonly range: Prefix;
  readonly routes: Prefix[];
  readonly route_dns: RouteDns[];
}

/** Parses range, routes and domains of a new network; a missing range is null. */
export function readNewNetwork(context: Context, asked: CreateNetwork): Promise<NewNetwork>;
export function readNewNetwork(context: Context, asked: Partial<CreateNetwork>): Promise<object>;
export async function readNewNetwork({ allowPublicRoutes }: Context, asked: Partial<CreateNetwork>): Promise<object> {
  const isPublicSuffix = await loadPublicSuffixes();
  const { private_cidr: cidr, route_dns = [] } = asked;
  return readFields((read) => {
    const range = cidr === undefined ? null : read(() => parsePrivateRange(cidr));
    const routes = read(() => parseRoutes(asked.routes ?? [], range ?? null, allowPublicRoutes));
    return { range, routes, route_dns: readRouteDns(read, route_dns, routes ?? null, isPublicSuffix) };
  });
}

/** Unchanged values create no revision and no conflict: a repeated request gets the same reply. */
export async function changeNetwork(
  context: Context,
  caller: Caller,
  id: number,
  asked: ChangeNetwork,
): Promise<Network> {
  const isPublicSuffix = await loadPublicSuffixes();
  let hasReauth = false;
  const changedNetwork = await withRevision(context, async (transaction, revise, append) => {
    const network = await lockNetwork(transaction, caller, id);
    const author = await requireAuthor(context, transaction, requireAdmitter(caller, asked));
    const { routes, route_dns } = readChange(context, network, asked, isPublicSuffix);
    const { name = network.name, description = network.description } = asked;
    const { map_max_age_seconds = network.map_max_age_seconds } = asked;
    const { spread = network.spread, self_enroll = network.self_enroll, approval = network.approval } = asked;
    const changed = { name, description, routes, map_max_age_seconds, spread, route_dns, self_enroll, approval };
    const details = changedFields(network, changed);
    if (Object.keys(details).length === 0) return loadNetwork(transaction, caller, id);
    checkExpectedRoutes('network', network.routes, asked.expected_routes);
    await checkEndpointsOutside(transaction, network, routes, asked.routes ? 'routes' : 'add_routes');
    const recordChange = await revise(id, changed);
    // After a time without self-enrolment, null leaves the present devices as they are.
    const reauthBefore = network.self_enroll?.reauth_hours ?? null;
    if (self_enroll && self_enroll.reauth_hours !== reauthBefore) {
      await applyReauth({ transaction, now: context.now(), recordChange }, id, self_enroll.reauth_hours);
      hasReauth = true;
    }
    const target = targetOf({ id, name });
    await record(transaction, author, { action: 'network.update', target, details });
    append(id, { type: 'network.updated', details });
    return loadNetwork(transaction, caller, id);
  });
  if (hasReauth) context.rescheduleExpiry();
  return changedNetwork;
}

/** Refuses fields of a change that break a rule of the network in its current state. */
export async function checkChange(context: Context, caller: Caller, id: number, asked: ChangeNetwork): Promise<void> {
  const network = await requireNetwork(context.db, caller, id);
  readChange(context, network, asked, await loadPublicSuffixes());
}

function readChange(
  { allowPublicRoutes }: Context,
  network: store.StoredNetwork,
  asked: ChangeNetwork,
  isPublicSuffix: (domain: string) => boolean,
) {
  return readFields((read) => {
    const routes = readRoutes(read, network, asked, allowPublicRoutes);
    const route_dns = asked.route_dns
      ? readRouteDns(read, asked.route_dns, routes ?? null, isPublicSuffix)
      : ofRoutes(network.route_dns, routes ?? []);
    return { routes, route_dns };
  });
}

/** Hosts would have to do without a covered endpoint, on which all of them may depend. */
async function checkEndpointsOutside(
  db: Db,
  network: store.StoredNetwork,
  routes: readonly Prefix[],
  field: 'routes' | 'add_routes',
): Promise<void> {
  const added = routes.filter((route) => !network.routes.includes(route));
  if (added.length === 0) return;
  const rules = (await listEndpoints(db, network.id)).flatMap(({ id, name, endpoint }) => {
    const covering = coveringRoute(endpoint, { range: null, routes: added });
    return covering === null
      ? []
      : [`${covering} covers the endpoint ${endpoint} of peer ${id} (${name}); change that first`];
  });
  if (rules.length > 0) throw new InvalidRequest({ [field]: rules.slice(0, 10) });
}

const longestList = 1000;

/** Deletes a network with its keys and peers. Keeps the peers' tokens to state the deletion. */
export async function deleteNetwork(context: Context, caller: Caller, id: number): Promise<void> {
  await withRevision(context, async (transaction, revise) => {
    const network = await lockNetwork(transaction, caller, id);
    const author = await requireAuthor(context, transaction, caller);
    await revise(id);
    // After the revision, which gives a network of an earlier version its lasting nonce.
    const revised = await store.readNetwork(transaction, id);
    const at = (await context.readTime(transaction)).toISOString();
    await insertDeletion(transaction, caller.organizationId, revised, at);
    const hosts = (await listUnconfirmed(transaction, id)).slice(0, longestList);
    const pending = hosts.map(({ id, name, version, last_seen }) => ({ id, name, version, last_seen }));
    // The network's events are deleted with it. Only the webhook receives this one.
    const details = { name: network.name, private_cidr: network.range, pending };
    await appendEvents(context, transaction, id, [{ type: 'network.deleted', details }]);
    await store.deleteNetwork(transaction, caller.organizationId, id);
    await record(transaction, author, {
      action: 'network.delete',
      target: targetOf(network),
      details: { private_cidr: network.range },
    });
  });
}

/** Returns a network that the caller may see; for a peer, only its own. */
export async function requireNetwork(db: Db, caller: Caller, id: number): Promise<store.StoredNetwork> {
  return requireOwn(store.findNetwork, db, caller, id);
}

/** Other such transactions wait: decisions based on the network's state stay valid. */
export async function lockNetwork(db: Db, caller: Caller, id: number): Promise<store.StoredNetwork> {
  return requireOwn(store.lockNetwork, db, caller, id);
}

async function requireOwn(
  find: typeof store.findNetwork,
  db: Db,
  caller: Caller,
  id: number,
): Promise<store.StoredNetwork> {
  const isVisible = caller.kind === 'peer' ? caller.networkId === id : permits(caller.networks, id);
  const network = isVisible ? await find(db, caller.organizationId, id) : undefined;
  if (!network) throw new NotFound('network');
  return network;
}

function targetOf({ id, name }: { id: number; name: string }) {
  return { kind: 'network', id, name } as const;
}

async function loadNetwork(db: Db, caller: Caller, id: number): Promise<Network> {
  const network = await requireNetwork(db, caller, id);
  return toNetwork(network, await listPeers(db, id), await readMapRules(db, id));
}
