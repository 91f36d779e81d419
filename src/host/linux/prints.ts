import { CpnError } from '../../core/errors.ts';
import type { Tool } from '../find-tool.ts';
import type { Run } from '../run.ts';

/** What is asked for a debug bundle. `wg show` without `dump` hides private and preshared keys itself. */
const questions: readonly (readonly [string, Tool, readonly string[]])[] = [
  ['wg-show.txt', 'wg', ['show']],
  ['ip-address.txt', 'ip', ['-details', 'address', 'show']],
  ['ip-route.txt', 'ip', ['route', 'show', 'table', 'all']],
  ['ip-route-6.txt', 'ip', ['-6', 'route', 'show', 'table', 'all']],
  ['ip-rule.txt', 'ip', ['rule', 'show']],
  ['ip-netconf.txt', 'ip', ['-4', 'netconf', 'show']],
  ['nft-ruleset.txt', 'nft', ['list', 'ruleset']],
  ['journal.txt', 'journalctl', ['--unit', 'cpn', '--lines', '2000', '--no-pager', '--output', 'short-iso']],
];

/** Of one answer; the end of a journal tells more than its beginning, and of a ruleset both do. */
const mostCharacters = 2 * 1024 * 1024;

/** {@link Inspector.prints}. */
export async function prints(run: Run): Promise<Map<string, string>> {
  const answers = questions.map(async ([name, tool, args]): Promise<[string, string]> => {
    try {
      return [name, (await run(tool, args, { deadlineMs: 10_000 })).slice(-mostCharacters)];
    } catch (error) {
      if (!(error instanceof CpnError)) throw error;
      return [name, `cannot be had: ${error.message}\n`];
    }
  });
  return new Map(await Promise.all(answers));
}
