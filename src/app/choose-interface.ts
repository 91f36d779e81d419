import { NotOurs, WrongUsage } from '../core/errors.ts';
import type { State } from '../store/state.ts';
import type { Tools } from './tools.ts';

/** How many names are tried: more tunnels than this on one host are a mistake somewhere. */
const mostInterfaces = 1000;

/** The interface for a new network: the one asked for if nobody has it, else the first free `cpnN`. */
export async function chooseInterface(tools: Tools, wanted: string | null, states: readonly State[]): Promise<string> {
  const links = await tools.host.links();
  const ours = new Set(states.map((state) => state.interface));
  if (wanted !== null) {
    if (ours.has(wanted)) {
      throw new WrongUsage(
        `this host has joined as ${wanted} already; "cpn leave ${wanted}" first, or choose another with --interface`,
      );
    }
    if (links.has(wanted)) throw new NotOurs('the interface', wanted, 'choose another with --interface');
    if ((await tools.store.readConfig(wanted)) !== null) {
      throw new NotOurs('the file', tools.store.configPath(wanted), 'choose another --interface, or move it away');
    }
    return wanted;
  }
  for (let number = 0; number < mostInterfaces; number += 1) {
    const name = `cpn${number}`;
    if (!ours.has(name) && !links.has(name) && (await tools.store.readConfig(name)) === null) return name;
  }
  throw new NotOurs('every interface from cpn0 to', `cpn${mostInterfaces - 1}`, 'choose one with --interface');
}
