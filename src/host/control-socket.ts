import { rm, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { NotOurs } from '../core/errors.ts';

/** How long a program may take to end once its interface is gone. */
const endsWithinMs = 2000;

/** Waits until the program behind a deleted interface has taken its socket away; takes away what a dead one left. */
export async function awaitEnd(link: string): Promise<void> {
  const deadline = performance.now() + endsWithinMs;
  // A socket that still answers after this time is one of another network namespace, and stays.
  while ((await exists(link)) && performance.now() < deadline) {
    if (!(await answers(link))) return removeSocket(link);
    await sleep(10);
  }
}

/** Removes the socket of a program that was killed; one that answers belongs to an interface in another namespace. */
export async function clearSocket(link: string): Promise<void> {
  if (!(await exists(link))) return;
  if (await answers(link)) {
    throw new NotOurs('the control socket', socketOf(link), 'choose another name for the interface');
  }
  await removeSocket(link);
}

/** The folder is wg(8)'s; it is the same for all network namespaces. */
function socketOf(link: string): string {
  return `/var/run/wireguard/${link}.sock`;
}

async function exists(link: string): Promise<boolean> {
  return stat(socketOf(link)).then(
    () => true,
    () => false,
  );
}

function answers(link: string): Promise<boolean> {
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
