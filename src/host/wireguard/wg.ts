import { parsePublicKey, parseSecretKey } from '../../core/crypto/keys.ts';
import { Secret } from '../../core/crypto/secret.ts';
import { CommandFailed, PortTaken } from '../../core/errors/index.ts';
import { formatEndpoint } from '../../core/net/endpoint.ts';
import type { ConfigureDevice, DeviceChange, RemovePeers, RenewPeers } from '../../core/reconcile/step.ts';
import { stderrOf } from '../process/command-error.ts';
import type { Run } from '../process/run.ts';

/** A change of a device that interrupts no other peer. */
export type DeviceStep = ConfigureDevice | RemovePeers | RenewPeers;

/** Here `link` is the kernel's name. @throws CommandFailed @throws PortTaken */
export async function changeDevice(run: Run, step: DeviceStep): Promise<void> {
  if (step.do === 'configure-device') return configureDevice(run, step);
  if (step.do === 'remove-peers') {
    for (const args of removalArgs(step)) await run('wg', args);
    return;
  }
  for (const { args, input } of renewalCalls(step)) await run('wg', args, input && { input });
}

async function configureDevice(run: Run, step: ConfigureDevice): Promise<void> {
  try {
    await run('wg', ['addconf', step.link, '/dev/stdin'], { input: renderDevice(step) });
  } catch (error) {
    if (error instanceof CommandFailed && /Address already in use/.test(stderrOf(error)))
      throw new PortTaken(step.link, step.listenPort ?? null, { cause: error });
    // Without a socket, wg uses netlink, whose error misleads on a kernel without WireGuard.
    if (!(error instanceof CommandFailed) || !/Protocol not supported/.test(stderrOf(error))) throw error;
    const ended = `the userspace process of ${step.link} exited; wireguard-go exits if its user has no inotify instances left (sysctl fs.inotify.max_user_instances)`;
    throw new CommandFailed('wg addconf', error.facts.exitCode as number | null, `${stderrOf(error).trim()}; ${ended}`);
  }
}

/**
 * Renders the input of `wg addconf IF /dev/stdin`. Writes absent settings of a peer as empty
 * values, because `addconf` keeps settings that are not in its input. It always replaces only the
 * allowed IPs (config.c of wireguard-tools).
 */
export function renderDevice({ privateKey, listenPort, fwmark, peers }: ConfigureDevice): Secret {
  const lines: string[] = [];
  if (privateKey !== undefined || listenPort !== undefined || fwmark !== undefined) lines.push('[Interface]');
  if (privateKey !== undefined) lines.push(`PrivateKey = ${revealKey(privateKey, 'private key')}`);
  if (listenPort !== undefined) lines.push(`ListenPort = ${listenPort}`);
  if (fwmark !== undefined) lines.push(`FwMark = ${fwmark === null ? 'off' : `0x${fwmark.toString(16)}`}`);
  for (const peer of peers) lines.push(...renderPeer(peer));
  return new Secret(`${lines.join('\n')}\n`);
}

/** The arguments of the `wg` calls that remove peers: one call per {@link maxRemovals} peers. */
export function removalArgs({ link, publicKeys }: RemovePeers): string[][] {
  const calls: string[][] = [];
  for (let start = 0; start < publicKeys.length; start += maxRemovals) {
    const batch = publicKeys.slice(start, start + maxRemovals);
    calls.push(['set', link, ...batch.flatMap((key) => ['peer', key, 'remove'])]);
  }
  return calls;
}

/** One call for all peers without preshared key, one for each other: `wg set` reads one stdin. */
export function renewalCalls({ link, peers }: RenewPeers): { readonly args: string[]; readonly input?: Secret }[] {
  const open = peers.filter((peer) => peer.presharedKey === null);
  return [
    ...(open.length === 0 ? [] : [{ args: ['set', link, ...open.flatMap(renewalArgs)] }]),
    ...peers.flatMap((peer) => {
      if (peer.presharedKey === null) return [];
      const input = new Secret(revealKey(peer.presharedKey, 'preshared key'));
      return [{ args: ['set', link, ...renewalArgs(peer)], input }];
    }),
  ];
}

function renewalArgs({ publicKey, presharedKey, endpoint, allowedIps, keepalive }: DeviceChange): string[] {
  return [
    ...['peer', publicKey, 'remove', 'peer', publicKey],
    ...(presharedKey === null ? [] : ['preshared-key', '/dev/stdin']),
    ...(endpoint === null ? [] : ['endpoint', formatEndpoint(endpoint)]),
    ...['persistent-keepalive', String(keepalive ?? 0), 'allowed-ips', allowedIps.join(',')],
  ];
}

/** 60 KB of arguments. execve(2) guarantees 128 KiB, whatever the stack limit. */
const maxRemovals = 1000;

/** 32 zero bytes, which WireGuard treats as no preshared key. */
const noKey = `${'A'.repeat(43)}=`;

function renderPeer({ publicKey, presharedKey, allowedIps, endpoint, keepalive }: DeviceChange): string[] {
  return [
    '[Peer]',
    `PublicKey = ${parsePublicKey(publicKey)}`,
    `PresharedKey = ${presharedKey === null ? noKey : revealKey(presharedKey, 'preshared key')}`,
    ...(allowedIps.length === 0 ? [] : [`AllowedIPs = ${allowedIps.join(', ')}`]),
    ...(endpoint === null ? [] : [`Endpoint = ${formatEndpoint(endpoint)}`]),
    `PersistentKeepalive = ${keepalive ?? 'off'}`,
  ];
}

/** Validates the key first, because the error of `wg` quotes a key that it cannot parse. */
function revealKey(key: Secret, field: string): string {
  return parseSecretKey(key.reveal(), field).reveal();
}
