import type { NetworkStatus, PeerStatus } from '../../app/status.ts';
import { type Command, jsonFlag, networkArgument } from '../command.ts';
import { openTools } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { bold, dim, green, note, print, printError, printJson, red, table, yellow } from '../output.ts';
import { describe } from '../show-pass.ts';

export const status: Command = {
  name: 'status',
  argument: networkArgument,
  summary: 'Show peers, routes and drift, from the host alone',
  flags: {
    ...jsonFlag,
    check: { kind: 'switch', summary: 'exit with 3 unless every network is up' },
  },
  examples: ['cpn status', 'cpn status --json | jq .networks[0].peers'],
  async run(input) {
    const { readStatus } = await import('../../app/status.ts');
    const tools = await openTools(input);
    await tools.host.check({ firewall: false });
    const networks = await readStatus(tools, input.argument('network'));
    if (input.switch('json')) printJson({ networks: networks.map(toJson) });
    else if (networks.length === 0) note('no network is joined; "cpn join" joins one');
    else print(networks.map((network) => toText(network, tools.now())).join('\n\n'));
    for (const { failure } of networks) if (failure) printError(failure);
    const healthy = networks.length > 0 && networks.every((network) => network.state === 'up');
    return input.switch('check') && !healthy ? exitCodes.pending : exitCodes.done;
  },
};

function toJson(status: NetworkStatus) {
  const { network, interface: link, state, address, publicKey, listenPort, mtu, peers, routes, drift, sync } = status;
  return {
    network,
    interface: link,
    state,
    address,
    public_key: publicKey,
    listen_port: listenPort,
    mtu,
    peers: peers.map((peer) => ({
      id: peer.id,
      name: peer.name,
      type: peer.type,
      public_key: peer.publicKey,
      address: peer.address,
      endpoint: peer.endpoint,
      allowed_ips: peer.allowedIps,
      state: peer.state,
      latest_handshake: peer.latestHandshake === null ? null : new Date(peer.latestHandshake * 1000).toISOString(),
      rx_bytes: peer.rxBytes,
      tx_bytes: peer.txBytes,
    })),
    routes: routes.map(({ reason, ...route }) => (reason === null ? route : { ...route, reason })),
    drift,
    sync: { mode: sync.mode, last_success: sync.lastSuccess, ...(sync.error !== null && { error: sync.error }) },
  };
}

function toText(status: NetworkStatus, now: Date): string {
  const paint = { up: green, degraded: yellow, down: red }[status.state];
  const port = status.listenPort === null ? '' : ` · port ${status.listenPort}`;
  const mtu = status.mtu === null ? '' : ` · MTU ${status.mtu}`;
  const head = `${bold(status.interface)}  ${paint(status.state)}  network ${status.network.name} (${status.network.id})`;
  const parts = [`${head}\n${dim(`address ${status.address}${port}${mtu} · key ${status.publicKey}`)}`];
  if (status.peers.length > 0)
    parts.push(
      table(
        peerHeader,
        status.peers.map((peer) => peerRow(peer, now)),
      ),
    );
  if (status.routes.length > 0) {
    const rows = status.routes.map(({ prefix, via, state, reason }) => [prefix, via ?? '-', state, reason ?? '']);
    parts.push(table(['route', 'via', 'state', ''], rows));
  }
  if (status.drift.length > 0) parts.push([yellow('drift'), ...status.drift.map(describe)].join('\n'));
  if (status.sync.error !== null) parts.push(`${yellow('sync')} ${status.sync.error}`);
  return parts.join('\n');
}

const peerHeader = ['peer', 'type', 'address', 'state', 'handshake', 'endpoint', 'received', 'sent'];

function peerRow(peer: PeerStatus, now: Date): string[] {
  const paint = { connected: green, idle: dim, stale: red, never: yellow }[peer.state];
  return [
    peer.name,
    peer.type,
    peer.address,
    paint(peer.state),
    peer.latestHandshake === null ? '-' : describeAge(now.getTime() / 1000 - peer.latestHandshake),
    peer.endpoint ?? '-',
    describeBytes(peer.rxBytes),
    describeBytes(peer.txBytes),
  ];
}

function describeAge(seconds: number): string {
  if (seconds < 120) return `${Math.max(0, Math.round(seconds))} s ago`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`;
  return `${Math.round(seconds / 3600)} h ago`;
}

function describeBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const amount = bytes / 1024 ** power;
  return `${power === 0 ? amount : amount.toFixed(1)} ${units[power]}`;
}
