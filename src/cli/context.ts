import { randomBytes } from 'node:crypto';
import { uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PeerService } from '../api/service.ts';
import type { Log, Patience, Tools } from '../app/tools.ts';
import type { ServiceAddress } from '../core/model.ts';
import type { Folders, Store } from '../store/store.ts';
import type { Input } from './input.ts';
import { progress, warn } from './output.ts';

/** A command speaks to a person; a daemon writes a log, and goes on without its disk. */
type Manner = 'command' | 'daemon';

/** Makes everything a use case of this host works with. The only place that constructs adapters for them. */
export async function openTools(input: Input, manner: Manner = 'command'): Promise<Tools> {
  const [{ linuxHost }, { openLog }] = await Promise.all([import('../host/linux/linux-host.ts'), import('./log.ts')]);
  const log = openLog(input, manner === 'daemon' ? 'info' : 'silent');
  const voice = manner === 'daemon' ? logVoice(log) : { progress, warn };
  return {
    host: linuxHost(),
    store: await openStore(foldersOf(input), manner, voice, log),
    connect: (address, patience) => connectService(address, { deadlineMs: 30_000, ...patience }, voice),
    log,
    now: () => new Date(),
    uptime,
    monotonic: () => performance.now() / 1000,
    sleep: (milliseconds, signal) => sleep(milliseconds, undefined, signal && { signal }).catch(() => {}),
    random: randomBytes,
    ...voice,
  };
}

/** How a person, or the log, is told of what a use case does. */
type Voice = Pick<Tools, 'progress' | 'warn'>;

function logVoice(log: Log): Voice {
  return {
    progress: (step) => log.debug({ step }, 'step'),
    warn: (text) => log.warn({ text }, 'warning'),
  };
}

async function openStore(folders: Folders, manner: Manner, { warn }: Voice, log: Log): Promise<Store> {
  const { fileStore } = await import('../store/file-store.ts');
  const onDamage = (path: string) =>
    warn(`${path} is damaged; the previous copy of it is used, and the next pass sets it aside`);
  const store = fileStore(folders, onDamage, warn);
  if (manner === 'command') return store;
  const { rememberingStore } = await import('../store/remembering-store.ts');
  return rememberingStore(store, (event, error) => {
    if (event === 'recovered') log.info({}, 'the disk takes everything again');
    else log.warn({ error: error?.message }, 'the disk fails; going on from memory');
  });
}

async function connectService(address: ServiceAddress, patience: Patience, { progress }: Voice): Promise<PeerService> {
  const { connectPeerService } = await import('../api/peer-service.ts');
  return connectPeerService(address, {
    ...patience,
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
