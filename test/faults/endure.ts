import { expect } from 'vitest';
import { status } from '../e2e/office.ts';
import { eventually } from '../lab/eventually.ts';
import { edgeAddress } from './members.ts';
import type { Recorder } from './record.ts';
import { readSync, type TroubledHost, tellsOfTrouble, troubleBegins, troubleEnds } from './troubled-host.ts';
import { whilePinging } from './while-pinging.ts';

/** A trouble with the control plane, as a test makes and sees it. */
export interface Ordeal {
  readonly how: string;
  readonly begin: () => Promise<unknown>;
  readonly end: () => Promise<unknown>;
  /** What the log and the status say of it. */
  readonly says: RegExp;
  /** Waits until the daemon tried, and failed, once more after it has told of it. */
  readonly tryAgain?: () => Promise<unknown>;
  /** Milliseconds within which it is told of; 30,000 unless told. */
  readonly patience?: number;
}

/**
 * Lets a host live through trouble with its control plane: the tunnel is left as it is and loses nothing, the trouble is told of
 * once, in the log and the status, and when it is over the control plane is heard again by itself.
 */
export async function endure({ host, daemon, joined }: TroubledHost, row: Recorder, ordeal: Ordeal): Promise<void> {
  const { how, begin, end, says, tryAgain, patience = 30_000 } = ordeal;
  const unharmed = { state: 'up', drift: [], sync: { error: expect.stringMatching(says) } };
  const losses = await whilePinging(host, edgeAddress, async () => {
    const mark = daemon.mark();
    row.injected(how);
    await begin();
    const line = await daemon.awaitLog('trouble begins', ({ msg }) => msg === troubleBegins, mark, patience);
    row.detected();
    expect(line).toMatchObject({ interface: joined.interface, error: expect.stringMatching(says) });
    await eventually('the error in the status', async () => (await readSync(host)).error !== undefined);
    expect(await status(host)).toMatchObject(unharmed);
    await tryAgain?.();
    expect(await status(host)).toMatchObject(unharmed);
    expect(daemon.since(mark).filter(tellsOfTrouble)).toEqual([line]);
    await end();
    await daemon.awaitLog('trouble ends', ({ msg }) => msg === troubleEnds, mark, patience);
    row.repaired();
    await eventually('no error in the status', async () => (await readSync(host)).error === undefined);
    expect(daemon.since(mark).filter(({ msg }) => msg === troubleEnds)).toHaveLength(1);
  });
  row.lost(losses);
  expect(losses.lost).toBe(0);
}
