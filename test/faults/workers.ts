import { mkdir, rm } from 'node:fs/promises';
import { expect } from 'vitest';
import { type Office, patiently } from '../e2e/office.ts';
import { joinHost } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import { type ListedPeer, Owner } from '../lab/owner.ts';

/** A host for repeated trials, in a network of its own, so that its faults change nothing for the others. */
export interface Worker {
  readonly host: Host;
  /** The network's number. */
  readonly network: number;
  readonly name: string;
  /** The address in it of the host that is never harmed. */
  readonly edgeAddress: string;
}

/** Hosts to try side by side. Each has a network of its own; one more host is in all of these. */
export interface Workers {
  readonly owner: Owner;
  readonly edge: Host;
  readonly workers: readonly Worker[];
}

/** A route that the edge serves in every worker. */
const edgeRoute = '192.168.50.0/24';

/** A connector has these in the LANs of all routes that a worker ever has, so that none is out of service. */
const siteAddresses = (host: number) => [`192.168.50.${host}/24`, `192.168.60.${host}/23`];

/** A start costs as much as several trials. */
const howMany = 2;

export async function startWorkers({ lab, controlPlane }: Office): Promise<Workers> {
  const owner = new Owner(controlPlane);
  const edge = await lab.addHost('edge', { address: '203.0.113.2/24' });
  const site = await lab.addSegment('site');
  await edge.plug(site, { address: siteAddresses(1) });
  const workers: Worker[] = [];
  for (let worker = 0; worker < howMany; worker += 1) {
    const name = `worker-${worker}`;
    const network = await owner.createNetwork(name, `10.${80 + worker}.0.0/16`, [edgeRoute]);
    const flags = ['--type', 'connector', '--endpoint', `${edge.address}:${51820 + worker}`, '--wait', '0'];
    const { address } = await joinHost(controlPlane, edge, { network: name, flags });
    const host = await lab.addHost(`host-${worker}`, { address: `203.0.113.${10 + worker}/24` });
    await host.plug(site, { address: siteAddresses(10 + worker) });
    workers.push({ host, network, name, edgeAddress: address });
  }
  return { owner, edge, workers };
}

/** The peers of a worker but for the edge and strangers. */
export async function listOthers({ owner }: Workers, { network }: Worker): Promise<readonly ListedPeer[]> {
  return (await owner.listPeers(network)).filter(({ name }) => name !== 'edge' && name !== 'stranger');
}

/** Changes all that a map has: a stranger and a route go, and others come. Each change makes the same number of steps. */
export async function changeMap({ owner }: Workers, { network }: Worker): Promise<void> {
  const before = (await owner.listPeers(network)).find(({ name }) => name === 'stranger');
  // Its port counts the changes.
  const number = 1 + Number(before?.endpoint?.split(':')[1] ?? 0);
  await owner.addStranger(network, 'stranger', `203.0.113.250:${number}`);
  if (before) await owner.removePeer(network, before.id);
  await owner.setRoutes(network, [edgeRoute, `192.168.${60 + (number % 2)}.0/24`]);
}

/** Joins a worker's host to its network, with the most to do that a join can have. */
export async function joinWorker({ owner }: Workers, { controlPlane }: Office, worker: Worker): Promise<void> {
  const { host, network } = worker;
  const input = await owner.makeKey(network, host.name);
  const flags = ['--name', host.name, '--type', 'connector', '--endpoint', `${host.address}:51820`, '--wait', '0'];
  await host.cpn(['join', '-', '--api', controlPlane.url, '--insecure-http', ...flags], { input });
}

/** Adds a worker's host at the edge, and checks that they reach each other. */
export async function meetEdge({ edge }: Workers, { host, name, edgeAddress }: Worker): Promise<void> {
  await edge.cpn(['reconcile', name]);
  expect(await host.ping(edgeAddress, patiently)).toMatchObject({ received: 1 });
}

/** Makes a worker what it was: its host new, and its network without it. */
export async function renew(all: Workers, worker: Worker): Promise<void> {
  const { host, network } = worker;
  for (const { id } of await listOthers(all, worker)) await all.owner.removePeer(network, id);
  await host.powerOff();
  for (const folder of [host.stateDir, host.configDir]) await rm(folder, { recursive: true, force: true });
  await mkdir(host.configDir, { mode: 0o700 });
  await host.boot();
}
