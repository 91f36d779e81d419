import { CpnError, Interrupted, NotJoined, RotationPending } from '../../core/errors/index.ts';
import type { Joined } from '../../store/state/state.ts';
import { findDiallingDevices } from '../lan/dialling-devices.ts';
import type { ConfirmOptions } from '../reconcile/await-confirmation.ts';
import { defaultConfirmMs } from '../reconcile/pass.ts';
import { isJoined, selectJoined } from '../select.ts';
import type { Tools } from '../tools.ts';
import { advanceRotation, type RotationResult } from './advance.ts';
import { beginRotation, isRotating } from './begin.ts';

export interface RotationReport {
  readonly interface: string;
  /** Null if it cannot be read. */
  readonly state: Joined | null;
  /** The first peer that answered to the new key; null if none did, or none had before. */
  readonly answered: string | null;
  /** Why the new key is not in use, or why the rotation is incomplete. */
  readonly failure: CpnError | null;
}

/** A connector whose public key devices have in their profiles. */
export interface HeldKey {
  readonly interface: string;
  readonly dialling: readonly string[];
}

/** Finds where devices would lose this host with a new key, unless a rotation is in progress. */
export async function findHeldKeys(
  tools: Pick<Tools, 'store' | 'connect' | 'warn'>,
  network: string | undefined,
): Promise<HeldKey[]> {
  const { states } = await selectJoined(tools, network);
  const found: HeldKey[] = [];
  for (const state of states.filter(({ rotation }) => rotation === null)) {
    const dialling = await findDiallingDevices(tools, state);
    if (dialling.length > 0) found.push({ interface: state.interface, dialling });
  }
  return found;
}

/**
 * Rotates the keys of networks, one after the other, and continues rotations in progress.
 *
 * @param held the result of {@link findHeldKeys}, which the operator accepted
 * @throws NotJoined without a network
 */
export async function rotateKeys(
  tools: Tools,
  network: string | undefined,
  confirmMs = defaultConfirmMs,
  held: readonly HeldKey[] = [],
): Promise<RotationReport[]> {
  const { states, unreadable } = await selectJoined(tools, network);
  if (states.length === 0 && unreadable.length === 0) {
    throw new NotJoined('no network is joined; join one with "cpn join"');
  }
  const reports = unreadable.map(({ interface: link, error }): RotationReport => {
    return { interface: link, state: null, answered: null, failure: error };
  });
  for (const { interface: link } of states) {
    const accepted = held.find((each) => each.interface === link)?.dialling ?? [];
    reports.push(await rotateOne(tools, link, { withinMs: confirmMs }, accepted));
  }
  return reports.toSorted((a, b) => (a.interface < b.interface ? -1 : 1));
}

async function explainEnd(tools: Pick<Tools, 'store'>, link: string): Promise<CpnError> {
  const state = await tools.store.read(link);
  if (state === null) return new NotJoined(`${link} was left while its key was being changed`);
  return new RotationPending(link, 'the network was taken down meanwhile');
}

async function rotateOne(
  tools: Tools,
  link: string,
  confirming: ConfirmOptions,
  accepted: readonly string[],
): Promise<RotationReport> {
  try {
    const rotated = await rotateKey(tools, link, confirming, accepted);
    if (rotated === null)
      return { interface: link, state: null, answered: null, failure: await explainEnd(tools, link) };
    const { state, answered } = rotated;
    return { interface: link, state, answered: answered?.name ?? null, failure: null };
  } catch (error) {
    if (!(error instanceof CpnError) || error instanceof Interrupted) throw error;
    const state = await tools.store.read(link);
    return { interface: link, state: state && isJoined(state) ? state : null, answered: null, failure: error };
  }
}

/**
 * Rotates the key of a network, or continues its rotation in progress, while no other change runs.
 * It ends and fails as {@link advanceRotation} does. A signal restores the old key.
 *
 * @param accepted the parameter of {@link beginRotation}
 */
export function rotateKey(
  tools: Tools,
  link: string,
  confirming: ConfirmOptions,
  accepted: readonly string[] = [],
): Promise<RotationResult | null> {
  return tools.store.change(() =>
    tools.deferSignals((interrupted) => {
      const signal = AbortSignal.any([interrupted, ...(confirming.signal ? [confirming.signal] : [])]);
      const wanted = { ...confirming, signal };
      return advanceRotation(tools, wanted, async () => {
        const state = await tools.store.read(link);
        if (state === null || !isJoined(state)) return null;
        if (isRotating(state) && state.enabled) return { state, isNew: false };
        return { state: await beginRotation(tools, state, wanted, accepted), isNew: true };
      });
    }),
  );
}

/**
 * Continues a rotation in progress, if there is one and the network is up.
 *
 * @returns null without a rotation
 * @throws Locked immediately if another process is working on it
 */
export function resumeRotation(tools: Tools, link: string, confirming: ConfirmOptions): Promise<RotationResult | null> {
  const resume = async () => {
    const state = await tools.store.read(link);
    if (state === null || !isJoined(state) || !isRotating(state) || !state.enabled) return null;
    return { state, isNew: false };
  };
  return tools.store.change(() => advanceRotation(tools, confirming, resume), false);
}
