import { InvalidValue } from '../../../core/errors/index.ts';
import { kernelProtocol, routeProtocol } from '../../../core/host-state/marks.ts';
import { formatRule, type Rule } from '../../../core/host-state/policy-rule.ts';
import { type Address, familyOf, formatInterfaceAddress, type Prefix } from '../../../core/net/cidr.ts';
import type { ConfigureLink, LinkCommand } from '../../../core/reconcile/step.ts';
import { usualMetric } from '../../../core/routing/place-route.ts';

/** `-force` continues after a failed line, so no route stops the others; the exit code shows it. */
export const batchArgs = ['-force', '-batch', '-'];

/** Renders the commands of a step for `ip -batch -` (ip(8)), which detects IPv4 and IPv6. */
export function renderBatch({ link, commands }: ConfigureLink): string[] {
  return commands.flatMap((command) => renderLines(link, command));
}

/** Replaces line numbers, as in `Command failed -:3`, with the lines. */
export function describeFailedLines(stderr: string, lines: readonly string[]): string {
  return stderr.replace(/Command failed -:(\d+)/g, (_, number) => `from "ip ${lines[Number(number) - 1] ?? '?'}"`);
}

/**
 * To take a route over from another interface, `replace` changes the route with that metric without
 * a gap. If our route needs another metric, the batch adds it and then deletes the replaced route.
 */
function renderLines(link: string, command: LinkCommand): string[] {
  if (!('add' in command) || command.add !== 'route' || command.replaces === undefined)
    return [renderLine(link, command)];
  const { replaces, ...addition } = command;
  if (command.source) return [renderRangeRoute(link, command.prefix, command.source, true)];
  const takeOver = renderRoute('replace', link, { ...addition, metric: replaces }, routeProtocol);
  if (replaces === (command.metric ?? usualMetric(command.prefix))) return [takeOver];
  return [
    takeOver,
    renderLine(link, addition),
    renderRoute('delete', link, { ...addition, metric: replaces }, routeProtocol),
  ];
}

function renderLine(link: string, command: LinkCommand): string {
  if ('set' in command) return renderSetting(link, command);
  const verb = 'add' in command ? 'add' : 'delete';
  if ('address' in command) return `address ${verb} ${formatInterfaceAddress(command.address)} dev ${link}`;
  if ('rule' in command) return `rule ${verb} ${renderRule(command.rule)}`;
  if (isThrow(command))
    return `route ${verb} throw ${command.prefix} table ${checkWord('table', command.table)} proto ${routeProtocol}`;
  if ('add' in command && command.source) return renderRangeRoute(link, command.prefix, command.source, false);
  if ('remove' in command) return renderRoute('delete', link, command, checkWord('protocol', command.protocol));
  return renderRoute(additionVerb(command), link, command, routeProtocol);
}

type ThrowCommand = Extract<LinkCommand, { add: 'throw' } | { remove: 'throw' }>;

function isThrow(command: Exclude<LinkCommand, { set: unknown }>): command is ThrowCommand {
  return 'add' in command ? command.add === 'throw' : command.remove === 'throw';
}

/**
 * A local network's route may have the same prefix and metric as ours. `append` adds ours after it,
 * where `add` fails. For IPv6, `append` would merge both into one multipath route.
 */
function additionVerb({ prefix, table = 'main' }: RouteFields): 'add' | 'append' {
  return familyOf(prefix) === 4 && table === 'main' ? 'append' : 'add';
}

interface RouteFields {
  readonly prefix: Prefix;
  readonly table?: string;
  readonly metric?: number;
  readonly tos?: string;
}

/** Omits metric 0, the IPv4 default: it matches any, and the kernel deletes the lowest. */
function renderRoute(verb: string, link: string, route: RouteFields, protocol: string) {
  const { prefix, table = 'main', metric = 0, tos } = route;
  const words = [`route ${verb} ${prefix} dev ${link}`];
  if (table !== 'main') words.push('table', checkWord('table', table));
  words.push('proto', protocol);
  if (metric > 0) words.push('metric', String(metric));
  if (tos !== undefined) words.push('tos', checkWord('tos', tos));
  return words.join(' ');
}

/** The on-link route of an address, as the kernel adds it, and removes it with the address. */
function renderRangeRoute(link: string, range: Prefix, source: Address, replaces: boolean): string {
  const verb = replaces ? 'replace' : 'append';
  return `route ${verb} ${range} dev ${link} proto ${kernelProtocol} scope link src ${source}`;
}

/** Priority and protocol distinguish our rule from rules with further attributes. */
function renderRule(rule: Rule): string {
  if (rule.table !== null) checkWord('table', rule.table);
  return `${formatRule(rule)} priority ${rule.priority} protocol ${checkWord('protocol', rule.protocol)}`;
}

function renderSetting(link: string, command: Extract<LinkCommand, { set: unknown }>): string {
  switch (command.set) {
    case 'up':
      return `link set dev ${link} up`;
    case 'mtu':
      return `link set dev ${link} mtu ${command.value}`;
    case 'alias':
      return `link set dev ${link} alias "${checkAlias(command.value)}"`;
  }
}

/** The batch parser of iproute2 cuts a line at `#` even inside quotes, and has no escape for it. */
function checkAlias(alias: string): string {
  if (!/^[^\p{C}"#\\]{1,255}$/u.test(alias) || Buffer.byteLength(alias) > 255) {
    throw new InvalidValue('alias', alias, 'cannot be an alias', 'use 1 to 255 bytes without quotes, "#" and "\\"');
  }
  return alias;
}

/** Accepts the name or number of a table or protocol. */
function checkWord(field: string, word: string): string {
  if (!/^[a-z0-9_-]{1,32}$/i.test(word)) throw new InvalidValue(field, word, 'is neither a name nor a number');
  return word;
}
