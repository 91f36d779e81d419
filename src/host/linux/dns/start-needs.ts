import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { CommandFailed, MissingTool } from '../../../core/errors/index.ts';
import { type Address, tryParseAddress } from '../../../core/net/cidr.ts';
import { isLoopback } from '../../../core/net/endpoint.ts';
import type { Run } from '../../process/run.ts';
import { readIfThere } from '../underlay.ts';

/** A setting of dnsmasq, whose value must exist on this host. */
export type StartNeed = readonly [option: string, value: string];

/**
 * Describes the first setting whose value does not exist; null without any.
 *
 * @param own the addresses of this host
 */
export async function findMissing(
  run: Run,
  needs: readonly StartNeed[],
  own: readonly Address[],
): Promise<string | null> {
  for (const [option, value] of needs) {
    const missing = await describeMissing(run, [option, value], own);
    if (missing !== null) return `${option}=${value}: ${missing}`;
  }
  return null;
}

async function describeMissing(run: Run, [option, value]: StartNeed, own: readonly Address[]): Promise<string | null> {
  switch (option) {
    case 'listen-address':
      return hasAddress(value, own) ? null : 'no interface has this address';
    case 'interface':
      return hasInterface(value) ? null : 'this host has no such interface';
    case 'user':
      return (await isKnown(run, 'passwd', value)) ? null : 'this host has no such user';
    case 'group':
      return (await isKnown(run, 'group', value)) ? null : 'this host has no such group';
    default:
      return hasFolder(value) ? null : `the folder ${dirname(value)} does not exist`;
  }
}

/** Only for addresses that can be compared: another word counts as present. */
function hasAddress(text: string, own: readonly Address[]): boolean {
  const address = tryParseAddress(text);
  return address === null || isLoopback(address) || own.includes(address);
}

/** The name may have one `*`, or the label of an address: `eth*`, `eth0:1`. */
function hasInterface(text: string): boolean {
  const names = [...readIfThere('/proc/net/dev').matchAll(/^\s*([^\s:]+):/gm)].map(([, name = '']) => name);
  const [before = '', after] = text.replace(/:.*$/s, '').split('*');
  const isMeant = (name: string) =>
    after === undefined
      ? name === before
      : name.length >= before.length + after.length && name.startsWith(before) && name.endsWith(after);
  return names.length === 0 || names.some(isMeant);
}

/** dnsmasq takes names alone, and getent(1) numbers too. */
async function isKnown(run: Run, database: 'passwd' | 'group', name: string): Promise<boolean> {
  if (
    readIfThere(`/etc/${database}`)
      .split('\n')
      .some((line) => line.startsWith(`${name}:`))
  )
    return true;
  if (/^\d+$/.test(name)) return false;
  try {
    await run('getent', [database, name]);
    return true;
  } catch (error) {
    if (error instanceof MissingTool) return true;
    if (error instanceof CommandFailed) return error.facts.exitCode !== 2;
    throw error;
  }
}

/** The folders that the sandbox of the daemon hides, or replaces. */
const hidden = /^\/(dev|home|proc|root|run\/user|tmp|var\/tmp)\//;

function hasFolder(path: string): boolean {
  return !path.startsWith('/') || hidden.test(path) || existsSync(dirname(path));
}
