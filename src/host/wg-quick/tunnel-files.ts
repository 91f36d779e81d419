import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { platform } from 'node:process';
import { makeKeyPair } from '../../core/crypto/keys.ts';
import { Secret } from '../../core/crypto/secret.ts';
import { DiskFailed, InvalidValue, NotOurs } from '../../core/errors/index.ts';
import {
  covers,
  formatInterfaceAddress,
  hostPrefix,
  type InterfaceAddress,
  maskPrefix,
  type Prefix,
} from '../../core/net/cidr.ts';
import { parseConfig, type TunnelConfig } from '../../core/wg-quick/parse.ts';
import { renderConfig } from '../../core/wg-quick/render.ts';

/** The wg-quick file of a tunnel: the only source of its mark, MTU and routes for this driver. */
export interface TunnelFile {
  /** Our mark, which is {@link Link.alias} on Linux. Null without a mark. */
  readonly alias: string | null;
  readonly config: TunnelConfig;
}

const banner = '# What cpn brought up; it replaces this file as a whole, and removes it with the tunnel.';

/** The text of the file. It never contains a hook. */
export function renderTunnelFile({ alias, config }: TunnelFile): Secret {
  return new Secret(renderConfig(config, { heading: alias === null ? banner : `${banner}\n# alias ${alias}` }));
}

/** @throws InvalidValue for text that cpn cannot have written */
export function parseTunnelFile(text: string): TunnelFile {
  return { alias: /^# alias (\S+)$/m.exec(text)?.[1] ?? null, config: parseConfig(text) };
}

/** The routes that wg-quick adds: the allowed IPs outside the subnet of the address. */
export function routesOf({ config }: TunnelFile): Prefix[] {
  const allowed = new Set(config.peers.flatMap((peer) => peer.allowedIps));
  return [...allowed].filter((prefix) => !isOnLink(prefix, config.address));
}

/** True if the subnet of the address covers the prefix, which then needs no route. */
export function isOnLink(prefix: Prefix, address: InterfaceAddress): boolean {
  const subnet = maskPrefix(formatInterfaceAddress(address));
  return subnet !== hostPrefix(address.address) && covers(subnet, prefix);
}

/**
 * Adds a placeholder peer for the address's subnet, on platforms without a route to it (macOS):
 * wg-quick adds the route. The peer is removed immediately, and the route stays, so later peers
 * need no restart. Null if no such peer is needed.
 *
 * @param random 32 bytes
 */
export function withSubnetPeer(file: TunnelFile, random: Uint8Array) {
  const { config } = file;
  const subnet = maskPrefix(formatInterfaceAddress(config.address));
  const isOwned = config.peers.some((peer) => peer.allowedIps.some((prefix) => covers(prefix, subnet)));
  if (isOwned || subnet === hostPrefix(config.address.address)) return null;
  const { publicKey } = makeKeyPair(random);
  const peer = { publicKey, presharedKey: null, endpoint: null, allowedIps: [subnet], keepalive: null };
  return { publicKey, file: { ...file, config: { ...config, peers: [...config.peers, peer] } } };
}

/** The files of the tunnels that are up, one per tunnel, in a folder with mode 0700. */
export interface TunnelFiles {
  path(link: string): string;
  /** Null if cpn wrote no such file. @throws DiskFailed */
  read(link: string): Promise<TunnelFile | null>;
  /** Replaces it atomically, mode 0600. @throws DiskFailed @throws NotOurs if others can write */
  write(link: string, file: TunnelFile): Promise<void>;
  /** Removes the file. Removes the folder with its last file. */
  remove(link: string): Promise<void>;
  /** The interfaces that have a file. */
  list(): Promise<readonly string[]>;
}

export function tunnelFiles(folder: string): TunnelFiles {
  const path = (link: string) => join(folder, `${link}.conf`);
  return {
    path,
    async read(link) {
      try {
        return parseTunnelFile(await readFile(path(link), 'utf8'));
      } catch (error) {
        if (error instanceof InvalidValue || (error as NodeJS.ErrnoException).code === 'ENOENT') return null;
        throw new DiskFailed('read', path(link), error as NodeJS.ErrnoException);
      }
    },
    async write(link, file) {
      const text = renderTunnelFile(file).reveal();
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await checkFolder(folder);
        await replace(path(link), text);
      } catch (error) {
        if (error instanceof NotOurs) throw error;
        throw new DiskFailed('write', path(link), error as NodeJS.ErrnoException);
      }
    },
    async remove(link) {
      for (const each of [temporaryOf(path(link)), path(link)]) await rm(each, { force: true });
      await rmdir(folder).catch(() => {});
    },
    list: async () =>
      (await readdir(folder).catch(() => [])).flatMap((name) => /^(.+)\.conf$/.exec(name)?.slice(1) ?? []),
  };
}

/** wg-quick runs commands from these files: only our user may write. Windows has no modes. */
async function checkFolder(folder: string): Promise<void> {
  const user = process.geteuid?.();
  if (user === undefined) return;
  const stats = await lstat(folder);
  if (stats.isDirectory() && stats.uid === user && (stats.mode & 0o022) === 0) return;
  throw new NotOurs('the folder', folder, 'remove it: no other user may write there');
}

/** A killed process may leave this file behind. */
function temporaryOf(path: string): string {
  return `${path}.tmp`;
}

async function replace(path: string, text: string): Promise<void> {
  const temporary = temporaryOf(path);
  await rm(temporary, { force: true });
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW = 0 } = constants;
  const file = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncFolder(dirname(path));
}

/** Without this, the rename may be lost. Windows cannot open folders. */
async function syncFolder(path: string): Promise<void> {
  if (platform === 'win32') return;
  const folder = await open(path);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
