import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandFailed } from '../../core/errors/index.ts';
import type { Run } from '../process/run.ts';
import type { TunnelManager } from '../wg-quick/tunnel-manager.ts';
import { type DeviceStep, removalArgs, renderDevice } from '../wireguard/wg.ts';

/** Polls a starting or stopping service 80 times, every 250 ms. */
const pollIntervalMs = 250;
const maxPolls = 80;

/**
 * WireGuard for Windows: one service per tunnel, created from its file and named after it
 * (docs/enterprise.md of wireguard-windows), and `wg` for its device. Never run on Windows: the
 * tests use substitutes of both programs.
 *
 * @param folder the folder of the tunnels' files, which only administrators may read
 */
export function tunnelServiceManager(run: Run, folder: string, intervalMs = pollIntervalMs): TunnelManager {
  const waitForState = async (link: string, isUp: boolean) => {
    for (let poll = 0; poll < maxPolls; poll += 1) {
      const links = (await run('wg', ['show', 'interfaces'])).split(/\s+/);
      if (links.includes(link) === isUp) return;
      await sleep(intervalMs);
    }
    const problem = isUp ? 'its interface did not appear' : 'its interface did not disappear';
    throw new CommandFailed(`the service of the tunnel ${link}`, null, `${problem}; see the log of WireGuard`);
  };
  return {
    name: 'WireGuard for Windows',
    tools: ['wg', 'wireguard'],
    lacksSubnetRoute: false,
    async up(link, path) {
      await run('wireguard', ['/installtunnelservice', path]);
      await waitForState(link, true);
    },
    async down(link) {
      await run('wireguard', ['/uninstalltunnelservice', link]);
      await waitForState(link, false);
      await rm(deviceFile(folder, link), { force: true });
    },
    change: (step) => change(run, folder, step),
    kernelName: async (link) => link,
  };
}

/** A fixed name: the next change, or the tunnel's removal, deletes what a killed process left. */
function deviceFile(folder: string, link: string): string {
  return join(folder, `${link}.device`);
}

/** Uses a temporary file, because Windows has no /dev/stdin. */
async function change(run: Run, folder: string, step: DeviceStep): Promise<void> {
  if (step.do !== 'configure-device') {
    const publicKeys = step.do === 'remove-peers' ? step.publicKeys : step.peers.map((peer) => peer.publicKey);
    for (const args of removalArgs({ do: 'remove-peers', link: step.link, publicKeys })) await run('wg', args);
    if (step.do === 'remove-peers') return;
  }
  const path = deviceFile(folder, step.link);
  const device = renderDevice({ ...step, do: 'configure-device' });
  await rm(path, { force: true });
  try {
    await writeFile(path, device.reveal(), { flag: 'wx', mode: 0o600 });
    await run('wg', ['addconf', step.link, path]);
  } finally {
    await rm(path, { force: true });
  }
}
