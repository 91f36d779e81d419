import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandFailed } from '../../core/errors.ts';
import type { DeviceStep } from '../change-device.ts';
import type { Run } from '../run.ts';
import { removalArgs, renderDevice } from '../wg.ts';
import type { TunnelManager } from '../wg-quick/tunnel-manager.ts';

/** How often, and how long in all, a service is waited for that has just been told to start or to end. */
const pauseMs = 250;
const mostLooks = 80;

/**
 * WireGuard for Windows: a service for each tunnel, made from its file and named after it (docs/enterprise.md of wireguard-windows),
 * and `wg` for its table. Never run on Windows: what it starts and how it reads the answers is tested with programs that
 * stand in for both, and nothing else.
 *
 * @param folder where the files of the tunnels are, which only administrators may read
 */
export function tunnelServiceManager(run: Run, folder: string, patienceMs = pauseMs): TunnelManager {
  const awaitState = async (link: string, isUp: boolean) => {
    for (let look = 0; look < mostLooks; look += 1) {
      const links = (await run('wg', ['show', 'interfaces'])).split(/\s+/);
      if (links.includes(link) === isUp) return;
      await sleep(patienceMs);
    }
    const trouble = isUp ? 'its interface did not come' : 'its interface did not go';
    throw new CommandFailed(`the service of the tunnel ${link}`, null, `${trouble}; see the log of WireGuard`);
  };
  return {
    name: 'WireGuard for Windows',
    tools: ['wg', 'wireguard'],
    lacksSubnetRoute: false,
    async up(link, path) {
      await run('wireguard', ['/installtunnelservice', path]);
      await awaitState(link, true);
    },
    async down(link) {
      await run('wireguard', ['/uninstalltunnelservice', link]);
      await awaitState(link, false);
    },
    change: (step) => change(run, folder, step),
    realName: async (link) => link,
  };
}

/** There is no /dev/stdin: what `wg` reads is in a file for as long as it takes. */
async function change(run: Run, folder: string, step: DeviceStep): Promise<void> {
  if (step.do !== 'configure-device') {
    const publicKeys = step.do === 'remove-peers' ? step.publicKeys : step.peers.map((peer) => peer.publicKey);
    for (const args of removalArgs({ do: 'remove-peers', link: step.link, publicKeys })) await run('wg', args);
    if (step.do === 'remove-peers') return;
  }
  const path = join(folder, `${randomUUID()}.device`);
  const device = renderDevice({ ...step, do: 'configure-device' });
  try {
    await writeFile(path, device.reveal(), { flag: 'wx', mode: 0o600 });
    await run('wg', ['addconf', step.link, path]);
  } finally {
    await rm(path, { force: true });
  }
}
