import { CpnError } from '../../core/errors/index.ts';
import { describeInbound } from '../../core/forward/describe-inbound-drop.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import { findDrops } from '../status/foreign-drops.ts';
import type { Tools } from '../tools.ts';

/**
 * Warns where another program's packet rules drop packets to the listen port, and notes it for "cpn status". Where the rules
 * cannot be read, it does nothing: "cpn doctor" reports that.
 */
export async function checkInbound(
  tools: Tools,
  evaluation: Pick<Evaluation, 'state' | 'desired' | 'actual'>,
): Promise<void> {
  const { interface: link } = evaluation.state;
  try {
    const { inbound } = await findDrops(tools, evaluation);
    await tools.store.amendNotes(link, { inboundDropped: inbound !== null });
    if (inbound !== null) tools.warn(describeInbound(inbound, link));
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
  }
}
