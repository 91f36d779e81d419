import { readFile } from 'node:fs/promises';
import { MissingTool } from '../../../core/errors/index.ts';
import { tableOf } from '../../../core/forward/own-table.ts';
import type { OpenPort, PortState } from '../../../core/host-state/receipt.ts';
import type { Run } from '../../process/run.ts';
import { findConflictingProcesses } from '../conflicting-processes.ts';

/** {@link Host.portStates}, for ufw and firewalld. */
export async function readPortStates(
  run: Run,
  link: string,
  port: number,
  links: readonly string[],
): Promise<PortState[]> {
  const [ufw, firewalld] = await Promise.all([isUfwEnabled(), isFirewalldRunning()]);
  return [
    ...(ufw ? await ifInstalled(() => readUfw(run, link, port)) : []),
    ...(firewalld ? await ifInstalled(() => readFirewalld(run, port, links)) : []),
  ];
}

/** Reads the configuration, because ufw has no daemon: its unit loads rules. */
export async function isUfwEnabled(): Promise<boolean> {
  return /^ENABLED=yes$/m.test(await readFile('/etc/ufw/ufw.conf', 'utf8').catch(() => ''));
}

async function isFirewalldRunning(): Promise<boolean> {
  return (await findConflictingProcesses()).some((name) => name.startsWith('firewalld '));
}

/** Returns no state if the program was removed: its settings may remain. */
async function ifInstalled(read: () => Promise<PortState[]>): Promise<PortState[]> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof MissingTool) return [];
    throw error;
  }
}

async function readUfw(run: Run, link: string, port: number): Promise<PortState[]> {
  const is = parseUfwRules(await run('ufw', ['show', 'added']), port, tableOf(link));
  return [{ at: { by: 'ufw', port, zone: null, permanent: true }, is }];
}

/**
 * Parses `ufw show added` (ufw(8)) for UDP to a port from anywhere. At most one such rule exists,
 * which a further `ufw allow` or `ufw deny` replaces. There may be a second rule for both
 * protocols. The first rule applies.
 */
export function parseUfwRules(text: string, port: number, comment: string): PortState['is'] {
  const [first = 'closed', ...more] = listUfwRules(text, port, comment);
  return first === 'open' && more.includes('ours') ? 'ours' : first;
}

function listUfwRules(text: string, port: number, comment: string): PortState['is'][] {
  return text.split('\n').flatMap((line): PortState['is'][] => {
    const [, action, number, protocol, note] = ufwRule.exec(line) ?? [];
    if (Number(number) !== port) return [];
    if (action === 'deny' || action === 'reject') return ['refused'];
    return [action === 'allow' && protocol !== undefined && note === comment ? 'ours' : 'open'];
  });
}

const ufwRule = /^ufw (allow|deny|reject|limit) (?:in )?(?:log(?:-all)? )?(\d{1,5})(\/udp)?(?: comment '([^']*)')?\s*$/;

/** Reads the state of the port in the zones of these interfaces, both runtime and permanent. */
export async function readFirewalld(run: Run, port: number, links: readonly string[]): Promise<PortState[]> {
  const states: PortState[] = [];
  for (const zone of await findZones(run, links)) {
    for (const permanent of [false, true]) {
      const at: OpenPort = { by: 'firewalld', port, zone, permanent };
      const answer = await run('firewall-cmd', [...scopeArgs(at), `--query-port=${port}/udp`], { allowExitCodes: [1] });
      states.push({ at, is: answer.trim() === 'yes' ? 'open' : 'closed' });
    }
  }
  return states;
}

/** An interface without a zone belongs to the default zone. */
async function findZones(run: Run, links: readonly string[]): Promise<readonly string[]> {
  const zones = new Set<string>();
  for (const link of links.length > 0 ? links : [null]) {
    const named = link === null ? '' : await readZone(run, link);
    const zone = named || (await run('firewall-cmd', ['--get-default-zone'])).trim();
    if (/^[a-zA-Z0-9_][a-zA-Z0-9_-]*$/.test(zone)) zones.add(zone);
  }
  return [...zones];
}

async function readZone(run: Run, link: string): Promise<string> {
  const zone = (await run('firewall-cmd', [`--get-zone-of-interface=${link}`], { allowExitCodes: [2] })).trim();
  return zone === 'no zone' ? '' : zone;
}

/** Opens or closes a UDP port. Closing twice succeeds. A ufw rule without our comment stays. */
export async function setPortOpen(run: Run, link: string, at: OpenPort, isOpen: boolean): Promise<void> {
  const port = `${at.port}/udp`;
  if (at.by === 'ufw') {
    const comment = tableOf(link);
    if (isOpen) await run('ufw', ['allow', port, 'comment', comment]);
    else if (listUfwRules(await run('ufw', ['show', 'added']), at.port, comment).includes('ours')) {
      await run('ufw', ['delete', 'allow', port]);
    }
    return;
  }
  // Runtime rules end with firewalld.
  const allowExitCodes = isOpen || at.permanent ? [] : [notRunning];
  await run('firewall-cmd', [...scopeArgs(at), `--${isOpen ? 'add' : 'remove'}-port=${port}`], { allowExitCodes });
}

/** The exit code of firewall-cmd(1) while firewalld is not running. */
const notRunning = 252;

function scopeArgs({ zone, permanent }: OpenPort): string[] {
  return [...(permanent ? ['--permanent'] : []), ...(zone === null ? [] : [`--zone=${zone}`])];
}
