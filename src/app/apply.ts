import { CpnError, NotConverged } from '../core/errors.ts';
import { plan } from '../core/plan.ts';
import { isNaming } from '../core/plan-hosts.ts';
import { record } from '../core/receipt.ts';
import type { Step } from '../core/step.ts';
import type { Joined } from '../store/state.ts';
import { meanwhile } from './meanwhile.ts';
import { noteSaved } from './saved-config.ts';
import { questionOf, type Survey } from './survey.ts';
import { secondsNow, type Tools } from './tools.ts';

/**
 * Makes the host what a survey says: writes down what is about to be made, does the steps in order, and looks again. The
 * surveyed state itself is left to be saved by the caller, once it is known to be good: until then `known` stays on disk.
 *
 * @returns the surveyed state with its receipt
 * @throws NotConverged when the host is not as planned afterwards
 */
export async function apply(tools: Tools, { state, desired, steps, actual }: Survey, known: Joined): Promise<Joined> {
  if (steps.length === 0) return state;
  const receipt = record(known.receipt, steps, actual);
  if (receipt !== known.receipt) await tools.store.write({ ...known, receipt });
  for (const step of steps) {
    tools.log.debug({ interface: state.interface, step: step.do, changes: step.changes }, 'applying a step');
    await applyStep(tools, step);
    tools.log.debug({ interface: state.interface, step: step.do }, 'a step is done');
  }
  const applied: Joined = receipt === state.receipt ? state : { ...state, receipt };
  const [seen] = await meanwhile(tools, tools.host.observe(questionOf(applied)), () => tools.store.foresee(applied));
  const left = plan(desired, seen, secondsNow(tools));
  const pending = left.filter((step) => !isNaming(step)).flatMap((step) => step.changes);
  if (pending.length > 0) {
    throw new NotConverged(
      state.interface,
      pending.map(({ action, kind, target }) => `${action} ${kind} ${target}`),
    );
  }
  return applied;
}

/** Does one step; one that the tunnel works without may fail, which a person is told. Returns whether it was done. */
export async function applyStep(tools: Tools, step: Step): Promise<boolean> {
  try {
    await tools.host.apply(step);
    return true;
  } catch (error) {
    if (!isNaming(step) || !(error instanceof CpnError)) throw error;
    tools.warn(error.message);
    return false;
  }
}

/** Saves what the host was made: the state where it differs from `known`, and the wg-quick file where its text does. */
export async function save(tools: Tools, applied: Joined, known: Joined, { desired, config }: Survey): Promise<void> {
  if (applied !== known) await tools.store.write(applied);
  const present = await tools.store.readConfig(applied.interface);
  if (present === config) return;
  await tools.store.writeConfig(applied.interface, config);
  noteSaved(applied.interface, config, desired.config);
}
