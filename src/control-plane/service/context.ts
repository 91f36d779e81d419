import type { EventType } from '../../contract/event.ts';
import type { PasswordCost } from '../domain/passwords.ts';
import type { Random } from '../domain/tokens.ts';
import type { ChangeNotifier } from '../push/change-notifier.ts';
import type { ControlPlaneStore } from '../store/store.ts';
import type { Db } from '../store/tables.ts';
import type { PeerChangeLimit } from './peer-change-limit.ts';

/** The dependencies of every use case, and the operator's settings. */
export interface Context {
  readonly db: Db;
  readonly now: () => Date;
  /** Milliseconds since 1970 by the clock at the start, and steadily since: to set the clock does not change it. */
  readonly steadyNow: () => number;
  /** The time of the database, by which processes whose clocks differ write one audit. */
  readonly readTime: (db: Db) => Promise<Date>;
  readonly random: Random;
  readonly passwordCost: PasswordCost;
  readonly notifier: ChangeNotifier;
  /** The same for the health and the events of a network. */
  readonly healthNotifier: ChangeNotifier;
  /** Does for the other processes on the database what the two notifiers do for this one. */
  readonly announce: ControlPlaneStore['announce'];
  readonly isListening: ControlPlaneStore['isListening'];
  /** The events that the webhook receives; empty without one. */
  readonly webhookTypes: ReadonlySet<EventType>;
  /** How often peers may change themselves. */
  readonly peerChangeLimit: PeerChangeLimit;
  /** How often the peers of a network that are new may change themselves, all together; by network. */
  readonly newPeerLimit: PeerChangeLimit;
  /** How many peers may enrol; by network. */
  readonly enrollmentLimit: PeerChangeLimit;
  /** How often peers may report. */
  readonly reportLimit: PeerChangeLimit;
  /** How many events their reports may be. */
  readonly reportEventLimit: PeerChangeLimit;
  /** To be called when a peer may expire earlier than any other. */
  readonly rescheduleExpiry: () => void;
  /** When hosts were last seen, and what they sent, is kept. */
  readonly keepsPresence: boolean;
  /** Networks may offer routes to public addresses. */
  readonly allowPublicRoutes: boolean;
  /** Where browsers open the console; empty for any host. */
  readonly publicUrls: readonly URL[];
  /** Only this machine can call, so its peers may well be at loopback addresses. */
  readonly onLoopback: boolean;
}
