import { readFile } from 'node:fs/promises';
import { InvalidValue } from '../../core/errors/index.ts';
import { destinationSet } from '../../core/forward/direct-path-rules.ts';
import { tableOf } from '../../core/forward/own-table.ts';
import { type Address, parseAddress } from '../../core/net/cidr.ts';
import { parseOutput, stderrOf } from '../process/command-error.ts';
import type { Run } from '../process/run.ts';
import { asList, isEntry } from './ip/json-entry.ts';
import { readObjects } from './nft/own-table.ts';

/** The column of sent packets in /proc/net/dev (proc_net_dev(5)), counted after the name. */
const sentColumn = 9;

/** The packets that an interface sent; null without it. */
export async function countSent(link: string): Promise<number | null> {
  const text = await readFile('/proc/net/dev', 'utf8');
  const line = text.split('\n').find((each) => each.trimStart().startsWith(`${link}:`));
  const fields =
    line
      ?.slice(line.indexOf(':') + 1)
      .trim()
      .split(/\s+/) ?? [];
  const count = Number(fields[sentColumn]);
  return Number.isSafeInteger(count) ? count : null;
}

/**
 * The addresses to which packets left lately. Empty if the rules that record them are not loaded.
 *
 * @throws CommandFailed, MissingTool
 */
export async function readRecentDestinations(run: Run, link: string): Promise<readonly Address[]> {
  try {
    const args = ['--json', 'list', 'set', 'inet', tableOf(link), destinationSet];
    return parseOutput('nft', await run('nft', args), parseDestinations);
  } catch (error) {
    if (stderrOf(error).includes('No such file or directory')) return [];
    throw error;
  }
}

function parseDestinations(text: string): readonly Address[] {
  const set = readObjects(text).find(({ set }) => isEntry(set) && set.name === destinationSet)?.set;
  if (!isEntry(set)) throw new InvalidValue('it', undefined, 'has no set of destinations');
  return asList(set.elem).map((given) => {
    const elem = isEntry(given) ? given.elem : given;
    return parseAddress(String(isEntry(elem) ? elem.val : elem));
  });
}
