import type { Host } from '../lab/host.ts';
import { type Losses, LossMeter } from './loss-meter.ts';
import { expectUntouched, readSessions } from './sessions.ts';

/** Runs `work` while a tunnel of the host is pinged, and checks that these sessions, by default all, were not touched. */
export async function whilePinging(
  host: Host,
  address: string,
  work: () => Promise<void>,
  keys?: readonly string[],
): Promise<Losses> {
  await using meter = await LossMeter.start(host, address);
  const before = await readSessions(host);
  await work();
  expectUntouched(before, await readSessions(host), keys);
  return await meter.stop();
}
