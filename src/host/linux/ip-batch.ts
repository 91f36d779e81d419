import type { Address, Prefix } from '../../core/cidr.ts';
import { InvalidValue } from '../../core/errors.ts';
import { kernelProtocol, routeProtocol } from '../../core/marks.ts';
import { formatInterfaceAddress } from '../../core/model.ts';
import { formatRule, type Rule } from '../../core/rule.ts';
import type { ConfigureLink, LinkCommand } from '../../core/step.ts';

/** Goes on after a line that fails, so that one route never stops the others; the exit code tells of it all the same. */
export const batchArgs = ['-force', '-batch', '-'];

/** Writes each command of a step as a line for `ip -batch -` (ip(8)). IPv4 and IPv6 need no telling apart there. */
export function renderBatch({ link, commands }: ConfigureLink): string[] {
  return commands.map((command) => renderLine(link, command));
}

/** `ip` says `Command failed -:3`; a person wants to know which line that was. */
export function nameFailedLines(said: string, lines: readonly string[]): string {
  return said.replace(/Command failed -:(\d+)/g, (_, number) => `from "ip ${lines[Number(number) - 1] ?? '?'}"`);
}

function renderLine(link: string, command: LinkCommand): string {
  if ('set' in command) return renderSetting(link, command);
  const verb = 'add' in command ? ('replaces' in command ? 'replace' : 'add') : 'delete';
  if ('address' in command) return `address ${verb} ${formatInterfaceAddress(command.address)} dev ${link}`;
  if ('rule' in command) return `rule ${verb} ${renderRule(command.rule)}`;
  if ('add' in command && command.source)
    return renderRangeRoute(link, command.prefix, command.source, command.replaces);
  const protocol = 'remove' in command ? checkWord('protocol', command.protocol) : routeProtocol;
  const table =
    command.table === undefined || command.table === 'main' ? [] : ['table', checkWord('table', command.table)];
  return [`route ${verb} ${command.prefix} dev ${link}`, ...table, 'proto', protocol].join(' ');
}

/** The route to the range of an address as the kernel makes it, beside any other to that range, and takes it away with the address. */
function renderRangeRoute(link: string, range: Prefix, source: Address, replaces = false): string {
  const verb = replaces ? 'replace' : 'append';
  return `route ${verb} ${range} dev ${link} proto ${kernelProtocol} scope link src ${source}`;
}

/** Its priority and protocol tell it from any rule that differs only in what we do not write. */
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

/** iproute2's batch reader cuts a line at `#` even inside quotes, and knows no escape but for the end of a line. */
function checkAlias(alias: string): string {
  if (!/^[^\p{C}"#\\]{1,255}$/u.test(alias) || Buffer.byteLength(alias) > 255) {
    throw new InvalidValue('alias', alias, 'cannot be an alias', 'use 1 to 255 bytes without quotes, "#" and "\\"');
  }
  return alias;
}

/** A name or a number, as iproute2's tables of names hold them. */
function checkWord(field: string, word: string): string {
  if (!/^[a-z0-9_-]{1,32}$/i.test(word)) throw new InvalidValue(field, word, 'is neither a name nor a number');
  return word;
}
