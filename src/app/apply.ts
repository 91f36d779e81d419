import { NotConverged } from '../core/errors.ts';
import { record } from '../core/receipt.ts';
import type { Joined } from '../store/state.ts';
import { type Survey, survey } from './survey.ts';
import type { Tools } from './tools.ts';

/**
 * Carries a survey out: writes down what is about to be made, writes the file, does the steps in order, and looks again.
 * Does nothing at all, and writes nothing, when nothing differs.
 *
 * @throws NotConverged when the host is not as planned afterwards
 */
export async function apply(tools: Tools, { state, steps, config, changes, actual }: Survey): Promise<Joined> {
  if (changes.length === 0) return state;
  const receipt = record(state.receipt, steps, actual);
  const recorded: Joined = receipt.length === state.receipt.length ? state : { ...state, receipt };
  if (recorded !== state) await tools.store.write(recorded);
  if (changes.some((change) => change.kind === 'file')) await tools.store.writeConfig(state.interface, config);
  for (const step of steps) {
    tools.log.debug({ interface: state.interface, step: step.do, changes: step.changes }, 'applying a step');
    await tools.host.apply(step);
  }
  const after = await survey(tools, recorded);
  if (after.changes.length > 0) {
    throw new NotConverged(
      state.interface,
      after.changes.map(({ action, kind, target }) => `${action} ${kind} ${target}`),
    );
  }
  return recorded;
}
