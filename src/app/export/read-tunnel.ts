import { CpnError, NotJoined, UnreadableFile, WrongUsage } from '../../core/errors/index.ts';
import { parseConfig, type TunnelConfig } from '../../core/wg-quick/parse.ts';
import type { Joined } from '../../store/state/state.ts';
import { refuseUnreadable, selectJoined } from '../select.ts';
import type { StateTools } from '../tools.ts';

/**
 * Reads the tunnel to the named network, or to the only one. It queries neither a control plane nor
 * the kernel. Its wg-quick file is the last-known-good one.
 *
 * @throws NotJoined without a network
 * @throws WrongUsage if there are several and none is named
 * @throws UnreadableFile if its file is missing, or not in cpn's format
 */
export async function readTunnel(
  tools: StateTools,
  network: string | undefined,
): Promise<{ readonly interface: string; readonly config: TunnelConfig }> {
  const { interface: link } = await selectOne(tools, network);
  const path = tools.store.configPath(link);
  const remedy = `"cpn reconcile ${link}" writes it again`;
  const text = await tools.store.readConfig(link);
  if (text === null) throw new UnreadableFile(path, 'is missing', remedy);
  try {
    return { interface: link, config: parseConfig(text) };
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    throw new UnreadableFile(path, `was changed by another program: ${error.message}`, remedy, error);
  }
}

async function selectOne(tools: StateTools, network: string | undefined): Promise<Joined> {
  const { states, unreadable } = await selectJoined(tools, network);
  refuseUnreadable(unreadable);
  const [only, ...more] = states;
  if (only === undefined) throw new NotJoined('no network is joined; join one with "cpn join"');
  if (more.length === 0) return only;
  const names = states.map((state) => state.interface).join(', ');
  throw new WrongUsage(`this host is in ${states.length} networks; name one of ${names}`);
}
