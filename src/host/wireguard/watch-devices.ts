import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidValue } from '../../core/errors/index.ts';
import type { HostEvent, Watch } from '../host.ts';
import type { OutputCache } from '../process/output-cache.ts';
import type { Run } from '../process/run.ts';

/** Detects a change within 10 s, including the time to read many peers. */
const defaultIntervalMs = 9000;

/** The limit of one poll: a hanging userspace WireGuard must not delay the end of the watch. */
const deadlineMs = 4000;

export interface DeviceWatchOptions {
  readonly everyMs?: number | undefined;
  readonly outputCache?: OutputCache | undefined;
  /**
   * Returns the digest of an interface in an observation since the last poll. The watch compares
   * with that digest, so changes that a pass made do not count, but a revert of them does.
   */
  readonly takeSeen?: (link: string) => string | undefined;
}

/** {@link Host.watchDevices}: polls all WireGuard interfaces. */
export async function watchDevices(
  run: Run,
  listener: (event: HostEvent) => void,
  { everyMs = defaultIntervalMs, outputCache, takeSeen = () => undefined }: DeviceWatchOptions = {},
): Promise<Watch> {
  let known = await readDigests(run, outputCache);
  return pollUntilClosed(everyMs, async (signal) => {
    const found = await readDigests(run, outputCache);
    if (signal.aborted || found === null) return;
    if (known !== null) for (const event of compare(withSeen(known, found, takeSeen), found)) listener(event);
    known = found;
  });
}

function withSeen(known: Digests, found: Digests, takeSeen: (link: string) => string | undefined): Digests {
  const links = new Set([...known.keys(), ...found.keys()]);
  return new Map(
    [...links].flatMap((link) => {
      const digest = takeSeen(link) ?? known.get(link);
      return digest === undefined ? [] : [[link, digest] as const];
    }),
  );
}

/** The digest of one interface from `wg show IF dump`. Undefined if it cannot be parsed. */
export function digestDump(link: string, text: string): string | undefined {
  const lines = text.split('\n').filter((line) => line !== '');
  try {
    return digestDevices(lines.map((line) => `${link}\t${line}`).join('\n')).get(link);
  } catch (error) {
    if (error instanceof InvalidValue) return undefined;
    throw error;
  }
}

/** Null after a failure. The next poll retries. */
async function readDigests(run: Run, outputCache: OutputCache | undefined): Promise<Digests | null> {
  return run('wg', ['show', 'all', 'dump'], { deadlineMs, ...(outputCache && { outputCache }) })
    .then(digestDevices)
    .catch(() => null);
}

function compare(before: Digests, after: Digests): HostEvent[] {
  const links = [...new Set([...before.keys(), ...after.keys()])];
  return links
    .filter((link) => before.get(link) !== after.get(link))
    .map((link) => ({ kind: 'device', link, removed: !after.has(link) }));
}

/**
 * Calls `poll` every `everyMs` until the watch is closed, never two at once. `poll` must not throw.
 * After its signal is aborted, a poll must report nothing.
 */
export function pollUntilClosed(everyMs: number, poll: (signal: AbortSignal) => Promise<void> | void): Watch {
  const closing = new AbortController();
  const { signal } = closing;

  const loop = async () => {
    while (!signal.aborted) {
      await sleep(everyMs, undefined, { signal }).catch(() => {});
      if (!signal.aborted) await poll(signal);
    }
  };
  const ended = loop();

  return {
    close: async () => {
      closing.abort();
      await ended;
    },
  };
}

/** A digest of the configuration of each WireGuard interface. */
type Digests = ReadonlyMap<string, string>;

/**
 * Parses `wg show all dump` (wg(8)) into a digest per interface. The digest covers keys, listen
 * port and fwmark, and the key, preshared key, allowed IPs and keepalive of each peer, in any
 * order. It leaves out endpoints, handshakes and counters, which change in normal operation.
 */
export function digestDevices(text: string): Digests {
  const links = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const fields = line.split('\t');
    const [link = ''] = fields;
    const known = links.get(link);
    if (fields.length === linkFields && known === undefined) links.set(link, [line]);
    else if (fields.length === peerFields && known !== undefined) known.push(describePeer(fields));
    // The error omits the line, which may contain a private key.
    else
      throw new InvalidValue(
        'wg show all dump',
        undefined,
        'has a line with an unexpected number of fields, according to wg(8)',
      );
  }
  return new Map([...links].map(([link, lines]) => [link, digest(lines)]));
}

/** Link, private key, public key, listen port, fwmark. */
const linkFields = 5;
/** Link, key, preshared key, endpoint, allowed IPs, handshake, bytes in, bytes out, keepalive. */
const peerFields = 9;

function describePeer([, publicKey, presharedKey, , allowedIps = '', , , , keepalive]: readonly string[]): string {
  return [publicKey, presharedKey, allowedIps.split(',').sort().join(','), keepalive].join('\t');
}

function digest(lines: readonly string[]): string {
  return createHash('sha256')
    .update([...lines].sort().join('\n'))
    .digest('base64');
}
