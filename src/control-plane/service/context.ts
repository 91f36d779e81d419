import type { PasswordCost } from '../passwords.ts';
import type { PeerChanges } from '../peer-changes.ts';
import type { Store } from '../store/open-store.ts';
import type { Db } from '../store/tables.ts';
import type { Random } from '../tokens.ts';
import type { Waiters } from '../waiters.ts';

/** What every use case needs: the database, the time, randomness, and who waits, and what the operator decided. */
export interface Context {
  readonly db: Db;
  readonly now: () => Date;
  /** The time of the database, by which processes whose clocks differ write one audit. */
  readonly readTime: (db: Db) => Promise<Date>;
  readonly random: Random;
  readonly passwordCost: PasswordCost;
  readonly waiters: Waiters;
  /** Tells other processes on the same database what {@link waiters} tell this one. */
  readonly announce: Store['announce'];
  /** How often peers may change themselves. */
  readonly peerChanges: PeerChanges;
  /** Networks may offer routes to public addresses. */
  readonly allowPublicRoutes: boolean;
  /** Only this machine can call, so its peers may well be at loopback addresses. */
  readonly onLoopback: boolean;
}
