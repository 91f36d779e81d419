import { CpnError } from '../../core/errors/index.ts';
import type { Tool } from '../process/find-tool.ts';
import type { Run } from '../process/run.ts';

/** Commands for the debug bundle. `wg show` without `dump` hides private and preshared keys. */
const diagnosticCommands: readonly (readonly [string, Tool, readonly string[]])[] = [
  ['wg-show.txt', 'wg', ['show']],
  ['ip-address.txt', 'ip', ['-details', 'address', 'show']],
  ['ip-route.txt', 'ip', ['route', 'show', 'table', 'all']],
  ['ip-route-6.txt', 'ip', ['-6', 'route', 'show', 'table', 'all']],
  ['ip-rule.txt', 'ip', ['rule', 'show']],
  ['ip-netconf.txt', 'ip', ['-4', 'netconf', 'show']],
  ['nft-ruleset.txt', 'nft', ['list', 'ruleset']],
  ['journal.txt', 'journalctl', ['--unit', 'cpn', '--lines', '2000', '--no-pager', '--output', 'short-iso']],
];

/** Of the end of each output: the newest lines of the journal. */
const maxCharacters = 2 * 1024 * 1024;

/** {@link Inspector.diagnostics} */
export async function collectDiagnostics(run: Run): Promise<Map<string, string>> {
  const outputs = diagnosticCommands.map(async ([name, tool, args]): Promise<[string, string]> => {
    try {
      return [name, (await run(tool, args, { deadlineMs: 10_000 })).slice(-maxCharacters)];
    } catch (error) {
      if (!(error instanceof CpnError)) throw error;
      return [name, `not available: ${error.message}\n`];
    }
  });
  return new Map(await Promise.all(outputs));
}
