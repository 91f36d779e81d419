import type { NetworkRules, RulesPreview } from '../../api/admin-service.ts';
import { InvalidValue, Refused } from '../../core/errors/index.ts';
import type { Id } from '../../core/map/model.ts';
import { parseAddress, parsePrefix } from '../../core/net/cidr.ts';
import { findEndingConnections } from '../../core/rules/ending-connections.ts';
import { readTcpConnections } from '../context.ts';
import { exitCodes } from '../exit-code.ts';
import { confirm } from '../input/confirm.ts';
import type { Flags } from '../input/flags.ts';
import type { Input } from '../input/input.ts';
import { hasTerminal } from '../input/password.ts';
import { green, note, print, printJson, warn } from '../output/output.ts';
import { type FileRules, type RuledNetwork, toFileRules } from './open-rules.ts';
import type { Locate } from './read-yaml.ts';
import { describeChanges, describeLimits, describeTests } from './show-preview.ts';

export const applyFlags: Flags = {
  'confirm-within': {
    kind: 'text',
    value: 'TIME',
    summary: 'bring the earlier rules back after this time, 10s to 60m, without "cpn rules confirm"',
  },
  'require-enforcement': {
    kind: 'switch',
    summary: 'let no peer be a destination whose host does not enforce rules, like require_enforcement in the file',
  },
};

/** The rules of a network that a user has read, and those that replace them. */
export interface RulesChange extends RuledNetwork {
  readonly current: NetworkRules;
  readonly etag: string | null;
  readonly wanted: FileRules;
  /** Where the user's file has them. */
  readonly at: Locate;
}

/** Seconds, or null without the flag. @throws InvalidValue */
export function readConfirmWithin(input: Input): number | null {
  const milliseconds = input.duration('confirm-within', 3_600_000);
  if (milliseconds === undefined) return null;
  if (milliseconds >= 10_000 && milliseconds % 1000 === 0) return milliseconds / 1000;
  throw new InvalidValue(
    input.nameOf('confirm-within'),
    input.text('confirm-within'),
    'is not a number of whole seconds from 10s to 60m',
  );
}

/**
 * Shows the effects of rules, refuses a failing test, and applies the rules once the user confirms.
 * Returns the exit code.
 */
export async function applyRules(input: Input, change: RulesChange, isDryRun = false): Promise<number> {
  const { service, network, current, etag, at } = change;
  const seconds = readConfirmWithin(input);
  const required = input.choice('require-enforcement');
  const wanted = { ...change.wanted, ...(required !== undefined && { require_enforcement: required }) };
  const isJson = input.switch('json');
  const preview = await locateRefusal(at, service.previewRules(network, wanted));
  await showPreview(input, { ...change, wanted }, preview);
  const finish = (rules: NetworkRules | null, exitCode: number = exitCodes.done) => {
    if (isJson) printJson({ applied: rules !== null, preview, rules });
    return exitCode;
  };
  if (preview.tests.some(({ passed }) => !passed)) {
    note('nothing was changed: correct the rules, or the test');
    return finish(null, exitCodes.failed);
  }
  if (isDryRun) {
    note('nothing was changed: this was a dry run');
    return finish(null);
  }
  if (isSame(current, wanted)) {
    note('nothing was changed: the network has these rules');
    return finish(null);
  }
  if (!(await confirm('Apply these rules?', input))) return finish(null, exitCodes.failed);
  const request = { ...wanted, ...(seconds !== null && { confirm_within_seconds: seconds }) };
  const applied = await locateRefusal(at, service.setRules(network, request, etag));
  if (!isJson) print(`${green('applied')} the rules: the network is ${applied.mode}`);
  await awaitConfirmation(input, change, applied);
  return finish(applied);
}

/**
 * Names the line of the file where the service refuses a rule, like a mistake that the file itself
 * shows. @throws InvalidValue
 */
export async function locateRefusal<Result>(at: Locate, request: Promise<Result>): Promise<Result> {
  try {
    return await request;
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 422) throw error;
    const [first, ...others] = error.fields.filter(({ field }) => /^(rules|tests)\.\d+/.test(field));
    if (first === undefined) throw error;
    const count = error.fields.length;
    const all = others.length === 0 ? '' : `; this is the first of ${count} mistakes`;
    throw new InvalidValue(at(toPath(first.field)), undefined, `${first.rule}${all}`);
  }
}

/** The path of a field such as `rules.0.to.1`. */
function toPath(field: string): (string | number)[] {
  return field.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}

async function showPreview(input: Input, change: RulesChange, preview: RulesPreview): Promise<void> {
  const show = input.switch('json') ? note : print;
  const { current, wanted } = change;
  show(describeChanges(preview));
  if (preview.tests.length > 0) show(describeTests(preview.tests));
  const mode = describeModeChange(current, wanted);
  if (mode !== null) warn(mode);
  for (const limit of describeLimits(preview, wanted.require_enforcement)) warn(limit);
  const ending = await describeEndingConnections(input, change, preview);
  if (ending !== null) warn(ending);
}

function describeModeChange({ mode }: NetworkRules, wanted: FileRules): string | null {
  if (mode === wanted.mode) return null;
  const effect =
    wanted.mode === 'closed'
      ? 'this closes the network: connections that no rule allows end, and no new one begins'
      : 'this opens the network: every peer reaches every peer and route, and no rule applies';
  return `${effect}; connections that a LAN began through a masquerading connector end`;
}

/** Rules that give way unless they are confirmed are not those that the user applies. */
function isSame(current: NetworkRules, wanted: FileRules): boolean {
  return (
    current.confirm_until === undefined && JSON.stringify(toFileRules(current)) === JSON.stringify(toFileRules(wanted))
  );
}

async function awaitConfirmation(input: Input, { service, network }: RuledNetwork, rules: NetworkRules): Promise<void> {
  if (rules.confirm_until === undefined) return;
  note(`the earlier rules return at ${rules.confirm_until}; to keep these, type: ${confirmCommand(network)}`);
  if (input.switch('yes') || !hasTerminal()) return;
  if (!(await confirm('Keep these rules?', input))) return;
  await service.confirmRules(network);
  note('confirmed the rules');
}

export function confirmCommand(network: Id): string {
  return `cpn rules confirm ${network}`;
}

const mostNamed = 5;

/** Describes the TCP connections of this machine that a change of rules ends; null without any. */
async function describeEndingConnections(
  input: Input,
  { service, network }: RuledNetwork,
  { lost, lost_count, complete }: RulesPreview,
): Promise<string | null> {
  if (lost_count === 0 && complete) return null;
  const connections = await readTcpConnections(input);
  const { private_cidr, peers } = await service.readNetwork(network);
  const isWhole = complete && lost.length === lost_count;
  const ending = findEndingConnections(connections, {
    ...{ cidr: parsePrefix(private_cidr), lost, isWhole },
    peers: peers.map(({ name, address }) => ({ name, address: parseAddress(address) })),
  });
  if (ending.length === 0) return null;
  const names = [...new Set(ending.map(({ from, to, port }) => `${from} → ${to} port ${port}`))];
  const more = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : '';
  return `connections of this machine that ${isWhole ? '' : 'may '}end: ${names.slice(0, mostNamed).join(', ')}${more}`;
}
