import { CpnError } from '../../core/errors/index.ts';
import { updateLanRoutes } from '../drain/lan-routes.ts';
import { findDrops } from '../status/foreign-drops.ts';
import type { Tools } from '../tools.ts';
import type { Evaluation } from './evaluate-network.ts';

/** Notes which routes of a connector have no way to their LAN now. A way that is back counts at once, which only the daemon waits for. */
export async function checkLanRoutes(tools: Tools, evaluation: Evaluation): Promise<void> {
  const dropped = await findDrops(tools, evaluation).then(
    ({ routes }) => routes,
    (error: unknown) => {
      // Packet rules that cannot be read withdraw nothing.
      if (error instanceof CpnError) return new Map();
      throw error;
    },
  );
  await updateLanRoutes(tools, evaluation, { settling: 0, since: new Map(), dropped });
}
