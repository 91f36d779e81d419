import { rm, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { MissingTool, NotOurs } from '../../core/errors/index.ts';
import type { Run } from '../process/run.ts';

/** In the order in which they are tried. */
const implementations = [
  { tool: 'wireguard-go', args: [] },
  // Otherwise boringtun changes to the login user, and fails without one, as under systemd.
  { tool: 'boringtun-cli', args: ['--disable-drop-privileges'] },
] as const;

/**
 * Creates a WireGuard interface in user space. It outlives this process. @throws MissingTool
 * @throws CommandFailed @throws NotOurs
 */
export async function startUserspace(run: Run, link: string): Promise<void> {
  await removeStaleSocket(link);
  for (const { tool, args } of implementations) {
    try {
      await run(tool, [...args, link], { daemon: true });
      return;
    } catch (error) {
      if (!(error instanceof MissingTool)) throw error;
    }
  }
  throw new MissingTool(
    'wireguard-go',
    "and this kernel has no WireGuard; boot a kernel with the wireguard module, apt install wireguard-go, or install Cloudflare's boringtun-cli into /usr/local/bin",
  );
}

/** Milliseconds from the removal of an interface to the end of its process. */
const exitTimeoutMs = 2000;

/** Waits until the process of a deleted interface removes its socket. Removes a stale socket. */
export async function waitForExit(link: string): Promise<void> {
  const deadline = performance.now() + exitTimeoutMs;
  // A socket that still accepts connections after the timeout belongs to another network namespace.
  while ((await exists(link)) && performance.now() < deadline) {
    if (!(await isAnswering(link))) return removeSocket(link);
    await sleep(10);
  }
}

/**
 * Returns the socket of this name if it accepts: without such an interface here, it belongs to
 * another network namespace. `wg` prefers it to a kernel interface.
 */
export async function findForeignSocket(link: string): Promise<string | null> {
  return (await isAnswering(link)) ? socketOf(link) : null;
}

/** A socket that does not accept belongs to a killed process. @throws NotOurs for another one */
async function removeStaleSocket(link: string): Promise<void> {
  const socket = await findForeignSocket(link);
  if (socket !== null) throw new NotOurs('the control socket', socket, 'choose another name for the interface');
  await removeSocket(link);
}

/** All network namespaces share this folder of wg(8). */
function socketOf(link: string): string {
  return `/var/run/wireguard/${link}.sock`;
}

async function exists(link: string): Promise<boolean> {
  return stat(socketOf(link)).then(
    () => true,
    () => false,
  );
}

function isAnswering(link: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path: socketOf(link) });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'ECONNREFUSED' && code !== 'ENOENT'));
  });
}

async function removeSocket(link: string): Promise<void> {
  await rm(socketOf(link), { force: true });
}
