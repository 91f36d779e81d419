import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import type { Logger } from 'pino';
import { parseAddress } from '../core/cidr.ts';
import { unusableAddress } from '../core/endpoint.ts';
import type { App } from './app.ts';
import { CannotListen } from './errors.ts';
import { defaultLimits, type Limits } from './limits.ts';
import { createServer } from './server.ts';
import { makeFirstOwner, type Owner } from './service/owner.ts';
import { openStore } from './store/open-store.ts';
import type { Random } from './tokens.ts';
import { Waiters } from './waiters.ts';

export interface ServeOptions {
  readonly host: string;
  /** 0 takes any free one. */
  readonly port: number;
  /** The folder for the database; made where it is not there, and closed to others. */
  readonly dataDir: string;
  /** Becomes the first user, when there is none; without it, and without a user, nothing is served. */
  readonly owner?: Owner | null;
  /** Networks may offer routes to public addresses, and the default route. */
  readonly allowPublicRoutes: boolean;
  /** Limits other than the usual ones. */
  readonly limits?: Partial<Limits>;
  readonly logger: Logger;
  readonly now?: () => Date;
  readonly random?: Random;
  /** Where requests wait for changes, for who wants to look on. */
  readonly waiters?: Waiters;
}

export interface ControlPlane {
  readonly url: string;
  /** Answers the requests under way, also those that wait, takes no others, and closes the database. */
  close(): Promise<void>;
}

/** Runs the control plane until it is closed. When this returns it answers; what it acknowledges survives a kill. */
export async function serve(options: ServeOptions): Promise<ControlPlane> {
  const { dataDir, owner = null, allowPublicRoutes, logger, now = () => new Date(), random = randomBytes } = options;
  const { waiters = new Waiters() } = options;
  const store = await openStore(dataDir);
  try {
    const context = { db: store.db, now, random, waiters, allowPublicRoutes, onLoopback: isLoopback(options.host) };
    if (await makeFirstOwner(context, owner)) logger.info({ email: owner?.email }, 'first owner made');
    const app = await createServer(context, { ...defaultLimits, ...options.limits }, logger);
    const url = await startListening(app, options);
    return { url, close: once(() => app.close().finally(store.close)) };
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function startListening(app: App, { host, port }: ServeOptions): Promise<string> {
  try {
    return await app.listen({ host, port, listenTextResolver: () => 'listening' });
  } catch (error) {
    await app.close();
    throw new CannotListen(host, port, error);
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || (isIP(host) !== 0 && unusableAddress(parseAddress(host)) === 'loopback');
}

function once(close: () => Promise<void>): () => Promise<void> {
  let closing: Promise<void> | undefined;
  return () => {
    closing ??= close();
    return closing;
  };
}
