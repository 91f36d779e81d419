import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Tools } from '../app/tools.ts';
import type { ServiceAddress } from '../core/model.ts';
import type { Folders } from '../store/store.ts';
import type { Input } from './input.ts';
import { progress, warn } from './output.ts';

/** Makes everything a use case of this host works with. The only place that constructs adapters for them. */
export async function openTools(input: Input): Promise<Tools> {
  const [{ linuxHost }, { fileStore }, { openLog }] = await Promise.all([
    import('../host/linux/linux-host.ts'),
    import('../store/store.ts'),
    import('./log.ts'),
  ]);
  return {
    host: linuxHost(),
    store: fileStore(foldersOf(input)),
    connect: connectService,
    log: openLog(input, 'silent'),
    now: () => new Date(),
    sleep,
    random: randomBytes,
    progress,
    warn,
  };
}

async function connectService(address: ServiceAddress, deadlineMs = 30_000) {
  const { connectPeerService } = await import('../api/peer-service.ts');
  return connectPeerService(address, {
    deadlineMs,
    onRetry: ({ problem, delayMs }) => progress(`${problem}; trying again in ${delayMs} ms`),
  });
}

function foldersOf({ environment }: Input): Folders {
  return {
    config: environment.CPN_CONFIG_DIR ?? '/etc/wireguard',
    state: environment.CPN_STATE_DIR ?? '/var/lib/cpn',
    runtime: environment.CPN_RUNTIME_DIR ?? '/run/cpn',
  };
}
