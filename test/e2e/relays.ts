import { eventually } from '../lab/eventually.ts';
import type { Host } from '../lab/host.ts';
import { type DataCenter, type RouteSeen, routesOf } from './data-center.ts';

/** The range of the network of a {@link DataCenter}. */
const range = '10.77.0.0/24';

/** The public key of the peer to which a host without an endpoint sends the packets for others; undefined without one. */
async function relayKeyOf(host: Host): Promise<string | undefined> {
  const { stdout } = await host.exec(['wg', 'show', 'cpn0', 'allowed-ips']);
  const line = stdout.split('\n').find((each) => each.split(/\s/).includes(range));
  return line?.split('\t')[0];
}

/** Waits until both hosts use the same relay, other than `not`, and returns it. */
export function awaitRelay(hosts: readonly Host[], connectors: readonly Host[], not?: Host): Promise<Host> {
  return eventually(`${hosts.map(({ name }) => name)} use one relay`, async () => {
    const keys = await Promise.all(hosts.map(relayKeyOf));
    const own = await Promise.all(
      connectors.map(async (each) => (await each.exec(['wg', 'show', 'cpn0', 'public-key'])).stdout.trim()),
    );
    const relay = connectors.find((_, index) => keys.every((key) => key === own[index]));
    return relay !== not && relay;
  });
}

/** Waits until a host would use a connector that failed, where the one in its place fails. */
export function awaitReturn(host: Host, connector: Host): Promise<boolean> {
  return eventually(`${connector.name} is usable at ${host.name} again`, async () => {
    const route = (await routesOf(host)).find(({ via }: RouteSeen) => via === connector.name);
    return route !== undefined && route.reason !== 'does not answer';
  });
}
