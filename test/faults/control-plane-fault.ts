import { expect } from 'vitest';
import { status } from '../e2e/office.ts';
import { eventually } from '../lab/eventually.ts';
import { edgeAddress } from './members.ts';
import { faultBegins, faultEnds, isFaultMessage, type ProxiedHost, readSync } from './proxied-host.ts';
import type { Recorder } from './record.ts';
import { whilePinging } from './while-pinging.ts';

/** A fault of the control plane, as a test injects and observes it. */
export interface ControlPlaneFault {
  readonly how: string;
  readonly begin: () => Promise<unknown>;
  readonly end: () => Promise<unknown>;
  /** The error in log and status. */
  readonly errorPattern: RegExp;
  /** Waits until the daemon has retried, and failed, after it logged the error. */
  readonly tryAgain?: () => Promise<unknown>;
  /** Milliseconds until it must be logged; 30,000 by default. */
  readonly patience?: number;
}

/**
 * Injects a fault of the control plane, and checks that a host survives it: the tunnel stays as it is and loses
 * nothing, log and status report the fault once, and afterwards the host uses the control plane again by itself.
 */
export async function surviveFault(
  { host, daemon, joined }: ProxiedHost,
  row: Recorder,
  fault: ControlPlaneFault,
): Promise<void> {
  const { how, begin, end, errorPattern, tryAgain, patience = 30_000 } = fault;
  const unharmed = { state: 'up', drift: [], sync: { error: expect.stringMatching(errorPattern) } };
  const losses = await whilePinging(host, edgeAddress, async () => {
    const mark = daemon.mark();
    row.injected(how);
    await begin();
    const line = await daemon.awaitLog('the fault', ({ msg }) => msg === faultBegins, mark, patience);
    row.detected();
    expect(line).toMatchObject({ interface: joined.interface, error: expect.stringMatching(errorPattern) });
    await eventually('the error in the status', async () => (await readSync(host)).error !== undefined);
    expect(await status(host)).toMatchObject(unharmed);
    await tryAgain?.();
    expect(await status(host)).toMatchObject(unharmed);
    expect(daemon.since(mark).filter(isFaultMessage)).toEqual([line]);
    await end();
    await daemon.awaitLog('the recovery', ({ msg }) => msg === faultEnds, mark, patience);
    row.repaired();
    await eventually('no error in the status', async () => (await readSync(host)).error === undefined);
    expect(daemon.since(mark).filter(({ msg }) => msg === faultEnds)).toHaveLength(1);
  });
  row.lost(losses);
  expect(losses.lost).toBe(0);
}
