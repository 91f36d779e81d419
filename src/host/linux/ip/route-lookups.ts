import { CommandFailed } from '../../../core/errors/index.ts';
import { tunnelMark } from '../../../core/host-state/marks.ts';
import {
  type Address,
  addressAt,
  addressOf,
  familyOf,
  lengthOf,
  type Prefix,
  rangeOf,
} from '../../../core/net/cidr.ts';
import { formatCommand, parseOutput } from '../../process/command-error.ts';
import type { OutputCache } from '../../process/output-cache.ts';
import type { Run } from '../../process/run.ts';
import { invalidIpOutput } from './json-entry.ts';
import { showArgs } from './show.ts';

/** Bytes of JSON in one read: 15,000 routes or 2,000 interfaces. The internet's table: 100 MB. */
export const mostAtOnce = 2 * 1024 * 1024;

/** The kernel's reply to one line of a batch: JSON, or the rtnetlink error as in strerror(3). */
export type LookupResult = { readonly json: string } | { readonly refusal: string };

/**
 * Addresses that only a default route, or a half of it, matches (RFC 1122 and RFC 6890). No routing
 * protocol announces them, and the kernel looks them up like any other.
 */
export const defaultProbes = ['0.0.0.1', '240.0.0.1'] as unknown as readonly Address[];

/** Addresses near the beginning, middle and end. Their routes represent the whole prefix. */
export function probesOf(prefix: Prefix): readonly Address[] {
  if (familyOf(prefix) === 6 || lengthOf(prefix) > 29) return [addressOf(prefix)];
  const { first, last } = rangeOf(prefix);
  return [first + 1n, (first + last) / 2n + 2n, last - 1n].map(addressAt);
}

/** Uses the mark of WireGuard's own packets, which bypass the rules of a full tunnel. */
export function renderLookup(address: Address): string {
  return `route get fibmatch ${address} mark ${tunnelMark}`;
}

/**
 * Pairs the lines of a batch with the output of `ip -force -batch -`. A failed line has no output.
 * Stderr has its error, and then its number.
 *
 * @throws InvalidValue if a line has neither output nor error
 */
export function readAnswers(lines: readonly string[], stdout: string, stderr: string): readonly LookupResult[] {
  const refusals = new Map<number, string>();
  let error = '';
  for (const line of stderr.split('\n')) {
    const failed = /^Command failed -:(\d+)$/.exec(line);
    if (failed) refusals.set(Number(failed[1]) - 1, error);
    else error = line.replace(/^(?:RTNETLINK answers|Error): /, '');
  }
  const printed = stdout.split('\n').filter((line) => line.trim() !== '');
  if (printed.length + refusals.size !== lines.length) throw invalidIpOutput('has not a line for each command');
  let next = 0;
  return lines.map((_, index): LookupResult => {
    const refusal = refusals.get(index);
    if (refusal !== undefined) return { refusal };
    next += 1;
    return { json: printed[next - 1] ?? '' };
  });
}

/**
 * Runs a batch whose first lines must succeed. An error of a line in `more` is its reply.
 *
 * @returns the output of the first lines, and the replies to `more`
 */
export async function runBatch(
  run: Run,
  lines: readonly string[],
  more: readonly string[],
  outputCache: OutputCache,
): Promise<{ readonly text: string; readonly answers: readonly LookupResult[] }> {
  const input = [...lines, ...more, ''].join('\n');
  if (more.length === 0) {
    const text = await run('ip', showArgs, { input, outputCache, maxBytes: mostAtOnce });
    return { text, answers: [] };
  }
  let stderr = '';
  const onErrors = (text: string) => {
    stderr = text;
  };
  const options = { input, outputCache, maxBytes: mostAtOnce, allowExitCodes: [1], onErrors };
  const stdout = await run('ip', ['-force', ...showArgs], options);
  const answers = parseOutput('ip', stdout, () => readAnswers([...lines, ...more], stdout, stderr));
  const shown = answers.slice(0, lines.length);
  const failed = shown.find((answer) => 'refusal' in answer);
  if (failed && 'refusal' in failed) throw new CommandFailed(formatCommand('ip', showArgs), 1, failed.refusal);
  const text = shown.map((answer) => ('json' in answer ? `${answer.json}\n` : '')).join('');
  return { text, answers: answers.slice(lines.length) };
}

/** True if the kernel rejects the packet. False if it merely has no route. */
export function isRefused(answer: LookupResult): boolean {
  return 'refusal' in answer && !answer.refusal.includes('Network is unreachable');
}
