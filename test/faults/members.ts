import { join, type Office } from '../e2e/office.ts';
import { type Joined, joinHost } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import type { FaultyProxy } from './faulty-proxy.ts';

/** The address of the edge in the office. No test may touch its tunnels. */
export const edgeAddress = '10.77.0.1';

/** Adds the office's connector, which is the first to join, and has no daemon: every other host has a tunnel to it. */
export async function addEdge(office: Office): Promise<Host> {
  const edge = await office.lab.addHost('edge', { address: '203.0.113.11/24' });
  await join(office, edge, '--type', 'connector', '--endpoint', `${edge.address}:51820`);
  return edge;
}

/** Adds a host on the wan, which joins nothing yet. */
export function addHost({ lab }: Office, name: string): Promise<Host> {
  return lab.addHost(name, { address: `203.0.113.${lab.hosts.size + 20}/24` });
}

/** Adds a host that joins the office, and whose tunnel to the edge works. */
export async function addMember(
  office: Office,
  edge: Host,
  name: string,
  ...flags: string[]
): Promise<{ host: Host; joined: Joined }> {
  const host = await addHost(office, name);
  const joined = await joinHost(office.controlPlane, host, { network: 'office', flags, before: [edge] });
  return { host, joined };
}

/** The office through a proxy, or at another address of the proxy. */
export function behind({ url }: Pick<FaultyProxy, 'url'>, office: Office): Office {
  return { ...office, controlPlane: { ...office.controlPlane, url } };
}
