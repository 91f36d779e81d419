import type { DoctorTools } from '../../../src/app/doctor/examination.ts';
import { examine } from '../../../src/app/doctor/examine.ts';
import { reconcileNetworks } from '../../../src/app/networks/reconcile.ts';
import type { NetworkMap } from '../../../src/core/map/model.ts';
import type { Inspector } from '../../../src/host/host.ts';
import type { Joined } from '../../../src/store/state/state.ts';
import { dialled, peer } from '../../core/samples.ts';
import { joinedTo, mapAt } from '../joined-state.ts';
import { SimulatedHost } from '../simulated-host.ts';
import { answerWith } from '../simulated-service.ts';

/** A network of this host and peer 2. */
export const peerMap = mapAt('"1"', [peer(2, { endpoint: dialled(2) })], { routes: [] });

/** A healthy host that is up and has a handshake with peer 2. */
export async function startExaminedHost(
  listed: NetworkMap = peerMap,
  changes: Partial<Joined> = {},
  inspects: Partial<Inspector> = {},
) {
  const simulated = await SimulatedHost.with(
    joinedTo(listed, { keySince: '2023-11-01T00:00:00.000Z', createdAt: '2023-11-01T00:00:00.000Z', ...changes }),
  );
  simulated.service.mapReplies = [answerWith(listed)];
  simulated.onEcho = () => true;
  await reconcileNetworks(simulated.tools);
  simulated.updatePeer(2, {
    latestHandshake: Math.floor(simulated.tools.now().getTime() / 1000),
    endpoint: { ...dialled(2) } as never,
  });
  const unused = () => {
    throw new Error('unexpected call');
  };
  const inspector: Inspector = {
    unexamined: new Set(),
    tools: async () => [{ tool: 'wg', path: '/usr/bin/wg', version: 'v1', remedy: 'apt install wireguard-tools' }],
    kernel: async () => ({ release: '6.1', wireguard: true, tun: true }),
    mayAdminister: async () => true,
    user: () => 0,
    managers: async () => [],
    preparedManagers: async () => [],
    file: async () => null,
    space: async (path) => ({ path, bytes: 1e12, files: null }),
    holder: async () => ({ pid: 7, alive: true }),
    udpPorts: async () => new Set([simulated.actual.device?.listenPort ?? 0]),
    diagnostics: unused,
    ...inspects,
  };
  const tools: DoctorTools = {
    ...simulated.tools,
    inspector,
    folders: { config: '/etc/wireguard', state: '/var/lib/cpn', runtime: '/run/cpn' },
    probeService: async () => ({ date: tools.now().getTime() / 1000, tookMs: 3 }),
    environmentProxy: () => null,
  };
  return { simulated, tools };
}

/** What `cpn doctor` finds to be a problem. */
export async function problemsOf(tools: DoctorTools) {
  return (await examine(tools)).filter(({ verdict }) => verdict === 'problem');
}
