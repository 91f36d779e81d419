import { isDeepStrictEqual } from 'node:util';
import type { ChangeNetwork, CreateNetwork, Network, NetworkSummary } from '../../contract/network.ts';
import type { Caller } from '../caller.ts';
import { NotFound } from '../errors.ts';
import { readFields } from '../field-rules.ts';
import { parsePrivateRange, parseRoutes } from '../network-rules.ts';
import * as store from '../store/networks.ts';
import { listPeers } from '../store/peers.ts';
import type { Db } from '../store/tables.ts';
import type { Context } from './context.ts';
import { presentNetwork, presentSummary } from './present.ts';
import { revising } from './revising.ts';

export async function listNetworks({ db }: Context, caller: Caller): Promise<NetworkSummary[]> {
  return (await store.listNetworks(db, caller.organizationId)).map(presentSummary);
}

export async function createNetwork(context: Context, caller: Caller, asked: CreateNetwork): Promise<Network> {
  const { range, routes } = readFields((read) => {
    const range = read(() => parsePrivateRange(asked.private_cidr));
    return { range, routes: read(() => parseRoutes(asked.routes ?? [], range ?? null, context.allowPublicRoutes)) };
  });
  const fields = { name: asked.name, description: asked.description ?? '', range, routes };
  const network = await store.insertNetwork(context.db, caller.organizationId, fields, context.now().toISOString());
  return presentNetwork(network, []);
}

/** The network with its peers, both of one revision. */
export async function readNetwork({ db }: Context, caller: Caller, id: number): Promise<Network> {
  return db.transaction().execute(async (transaction) => loadNetwork(transaction, caller, id));
}

/** Sets the fields given; what is the same already makes no revision. */
export async function changeNetwork(
  context: Context,
  caller: Caller,
  id: number,
  asked: ChangeNetwork,
): Promise<Network> {
  return revising(context, async (transaction, revise) => {
    const network = await requireNetwork(transaction, caller, id);
    const { routes } = readFields((read) => ({
      routes: read(() => parseRoutes(asked.routes ?? network.routes, network.range, context.allowPublicRoutes)),
    }));
    const { name = network.name, description = network.description } = asked;
    const changed = { name, description, routes };
    if (!isDeepStrictEqual({ ...network, ...changed }, network)) await revise(id, changed);
    return loadNetwork(transaction, caller, id);
  });
}

/** Removes a network with all its keys and peers. */
export async function deleteNetwork({ db, waiters }: Context, caller: Caller, id: number): Promise<void> {
  if (!(await store.deleteNetwork(db, caller.organizationId, id))) throw new NotFound('network');
  waiters.wake(id);
}

/** The network as the caller may see it: of its organization, and for a peer its own. */
export async function requireNetwork(db: Db, caller: Caller, id: number): Promise<store.StoredNetwork> {
  const foreign = caller.kind === 'peer' && caller.networkId !== id;
  const network = foreign ? undefined : await store.findNetwork(db, caller.organizationId, id);
  if (!network) throw new NotFound('network');
  return network;
}

async function loadNetwork(db: Db, caller: Caller, id: number): Promise<Network> {
  const network = await requireNetwork(db, caller, id);
  return presentNetwork(network, await listPeers(db, id));
}
