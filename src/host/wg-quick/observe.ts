import { networkInterfaces } from 'node:os';
import type { Actual, Device, Link } from '../../core/actual.ts';
import { CommandFailed } from '../../core/errors.ts';
import { parseSecretKey } from '../../core/keys.ts';
import { parseLinkName } from '../../core/link-name.ts';
import { onLinkRange } from '../../core/model.ts';
import type { Secret } from '../../core/secret.ts';
import type { Question } from '../host.ts';
import { readHosts } from '../hosts-file.ts';
import type { Run } from '../run.ts';
import { parseDump } from '../wg-dump.ts';
import { addressesOf, type Cards, lookAround } from './look-around.ts';
import { routesOf, type TunnelFile } from './tunnel-file.ts';
import type { TunnelFiles } from './tunnel-files.ts';
import type { TunnelManager } from './tunnel-manager.ts';

/** What this driver works with. */
export interface Portable {
  readonly run: Run;
  readonly manager: TunnelManager;
  readonly files: TunnelFiles;
}

/** A tunnel as `wg`, the kernel and its file know it. */
export interface Seen {
  /** The kernel's name; null where there is no interface. */
  readonly real: string | null;
  readonly device: Device | null;
  readonly privateKey: Secret | null;
  /** Null where there is none, and for one of another interface than the one that is there: their keys differ. */
  readonly file: TunnelFile | null;
  readonly cards: Cards;
}

/** Looks at one tunnel, with one process where there is one. */
export async function see({ run, manager, files }: Portable, link: string): Promise<Seen> {
  const cards = networkInterfaces();
  const written = await files.read(parseLinkName(link));
  const real = await manager.realName(link, written);
  const text = real === null ? null : await dump(run, real);
  if (text === null) {
    return { real: real !== null && real in cards ? real : null, device: null, privateKey: null, file: null, cards };
  }
  const [key = ''] = text.split('\t', 1);
  const privateKey = key === '(none)' ? null : parseSecretKey(key);
  const isItsOwn = written !== null && written.config.privateKey.reveal() === privateKey?.reveal();
  return { real, device: parseDump(text), privateKey, file: isItsOwn ? written : null, cards };
}

/**
 * Reads a host anew: WireGuard's own table from `wg`, addresses from the kernel, and from the file that was brought up the mark, the
 * MTU and the routes, which nobody can be asked for here: a route or an MTU that somebody changed is not seen. There are no
 * packet rules, policy rules and sysctls of ours.
 */
export async function observe(portable: Portable, { link, hosts }: Question): Promise<Actual> {
  const seen = await see(portable, link);
  const { device, file } = seen;
  const found = findLink(link, seen);
  return {
    link: found,
    device,
    routes: file === null ? [] : routesOf(file).map((prefix) => ({ prefix, table: 'main', protocol: 'boot' })),
    onLink: found?.addresses.flatMap((address) => onLinkRange(address) ?? []) ?? [],
    rules: [],
    firewall: null,
    sysctls: {},
    hosts: hosts ? await readHosts(link) : null,
    surroundings: lookAround(
      seen.real,
      seen.cards,
      await findOthers(portable, link, seen.cards),
      process.env.SSH_CONNECTION,
    ),
  };
}

function findLink(name: string, { real, file, cards }: Seen): Link | null {
  if (real === null) return null;
  const addresses = addressesOf(cards, real);
  return { name, mtu: file?.config.mtu ?? 0, up: addresses.length > 0, alias: file?.alias ?? null, addresses };
}

/** The files of our other tunnels, by the kernel's names of their interfaces; of a tunnel that is not there nothing is told. */
async function findOthers({ files, manager }: Portable, link: string, cards: Cards): Promise<Map<string, TunnelFile>> {
  const others = new Map<string, TunnelFile>();
  for (const other of await files.list()) {
    if (other === link) continue;
    const file = await files.read(other);
    const real = await manager.realName(other, file);
    if (file !== null && real !== null && real in cards) others.set(real, file);
  }
  return others;
}

/** Null where there is no such WireGuard interface, which each system says in words of its own. */
async function dump(run: Run, real: string): Promise<string | null> {
  try {
    return await run('wg', ['show', real, 'dump']);
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    const links = await run('wg', ['show', 'interfaces']);
    if (!links.split(/\s+/).includes(real)) return null;
    throw error;
  }
}
