import { expect } from 'vitest';
import type { Host } from '../lab/host.ts';

/** A peer's session, as in `wg show`. */
interface Session {
  /** Seconds since the epoch; 0 when there was none yet. */
  readonly latestHandshake: number;
  readonly rxBytes: number;
  readonly txBytes: number;
}

/** The sessions of an interface, by public key. */
export type Sessions = ReadonlyMap<string, Session>;

/** Seconds after which WireGuard itself makes a new handshake (REKEY_AFTER_TIME, drivers/net/wireguard/messages.h), less a little. */
const rekeyAfter = 115;

export async function readSessions(host: Host, link = 'cpn0'): Promise<Sessions> {
  const { stdout } = await host.exec(['wg', 'show', link, 'dump']);
  const peers = stdout.trim().split('\n').slice(1);
  return new Map(
    peers.map((line) => {
      const [key = '', , , , handshake, rx, tx] = line.split('\t');
      return [key, { latestHandshake: Number(handshake), rxBytes: Number(rx), txBytes: Number(tx) }];
    }),
  );
}

/**
 * Checks that these sessions, by default all, were not touched: counters never restarted, and no handshake came
 * before its time. To be called while packets flow, within about two minutes.
 */
export function expectUntouched(before: Sessions, after: Sessions, keys: Iterable<string> = before.keys()): void {
  for (const key of keys) {
    const [was, is] = [before.get(key), after.get(key)];
    if (was === undefined || is === undefined) throw new Error(`peer ${key} was taken out`);
    expect(is.rxBytes, `bytes received from ${key}`).toBeGreaterThanOrEqual(was.rxBytes);
    expect(is.txBytes, `bytes sent to ${key}`).toBeGreaterThanOrEqual(was.txBytes);
    const renewedAfter = is.latestHandshake - was.latestHandshake;
    if (renewedAfter !== 0) expect(renewedAfter, `seconds between handshakes of ${key}`).toBeGreaterThan(rekeyAfter);
  }
}
