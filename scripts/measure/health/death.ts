import type { ControlPlane } from '../../../test/lab/control-plane.ts';
import type { Daemon } from '../../../test/lab/daemon.ts';
import { eventually } from '../../../test/lab/eventually.ts';
import type { Host } from '../../../test/lab/host.ts';

export const kinds = ['power', 'cable', 'kill -9', 'partition'] as const;
export type Kind = (typeof kinds)[number];

/** The kernel of a host whose processes are killed closes their connections. */
const ways: Readonly<Record<Kind, (host: Host, daemon: Daemon) => Promise<unknown>>> = {
  power: async (host) => {
    await host.uplink.cut();
    await host.powerOff();
  },
  cable: (host) => host.uplink.unplug(),
  'kill -9': async (host, daemon) => {
    daemon.process.signal('SIGKILL');
    await host.exec(['sh', '-c', 'kill -9 $(pidof wireguard-go) 2>/dev/null || ip link delete cpn0']);
  },
  partition: (host) => host.uplink.cut(),
};

/** Has a host die. */
export async function die(kind: Kind, host: Host, daemon: Daemon): Promise<void> {
  await ways[kind](host, daemon);
}

interface OfflineEvent {
  readonly at: string;
  readonly peer: { readonly id: number; readonly name: string };
}

/**
 * Seconds from then until `peer.offline`, by its own time.
 *
 * @throws where another peer is stated
 * offline meanwhile
 */
export async function untilOffline({ cpn }: ControlPlane, network: number, id: number, began: number): Promise<number> {
  const read = async () => {
    const { stdout } = await cpn(['events', String(network), '--type', 'peer.offline', '--json']);
    const events: OfflineEvent[] = JSON.parse(stdout).events;
    const later = events.filter(({ at }) => Date.parse(at) >= began);
    const other = later.find(({ peer }) => peer.id !== id);
    if (other !== undefined) throw new Error(`${other.peer.name} is offline, which did not die`);
    return later.map(({ at }) => (Date.parse(at) - began) / 1000)[0];
  };
  return eventually('it is offline', read, { timeoutMs: 180_000, everyMs: 250 });
}
