import { NotConverged } from '../core/errors.ts';
import { record } from '../core/receipt.ts';
import type { Joined } from '../store/state.ts';
import { type Survey, survey } from './survey.ts';
import type { Tools } from './tools.ts';

/**
 * Makes the host what a survey says: writes down what is about to be made, does the steps in order, and looks again. The
 * surveyed state itself is left to be saved by the caller, once it is known to be good: until then `known` stays on disk.
 *
 * @returns the surveyed state with its receipt
 * @throws NotConverged when the host is not as planned afterwards
 */
export async function apply(tools: Tools, { state, steps, actual }: Survey, known: Joined): Promise<Joined> {
  if (steps.length === 0) return state;
  const receipt = record(known.receipt, steps, actual);
  if (receipt !== known.receipt) await tools.store.write({ ...known, receipt });
  for (const step of steps) {
    tools.log.debug({ interface: state.interface, step: step.do, changes: step.changes }, 'applying a step');
    await tools.host.apply(step);
  }
  const applied: Joined = receipt === state.receipt ? state : { ...state, receipt };
  const pending = (await survey(tools, applied)).steps.flatMap((step) => step.changes);
  if (pending.length > 0) {
    throw new NotConverged(
      state.interface,
      pending.map(({ action, kind, target }) => `${action} ${kind} ${target}`),
    );
  }
  return applied;
}

/** Saves what the host was made: the state where it differs from `known`, and the wg-quick file where its text does. */
export async function save(tools: Tools, applied: Joined, known: Joined, { config }: Survey): Promise<void> {
  if (applied !== known) await tools.store.write(applied);
  const present = await tools.store.readConfig(applied.interface);
  if (present !== config) await tools.store.writeConfig(applied.interface, config);
}
