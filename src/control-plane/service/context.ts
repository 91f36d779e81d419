import type { EventType } from '../../contract/event.ts';
import type { PasswordCost } from '../domain/passwords.ts';
import type { SessionLimits } from '../domain/session-limits.ts';
import type { SingleSignOn } from '../domain/single-sign-on.ts';
import type { Random } from '../domain/tokens.ts';
import type { ChangeNotifier } from '../push/change-notifier.ts';
import type { ControlPlaneStore } from '../store/database.ts';
import type { Db } from '../store/tables.ts';
import type { PeerChangeLimit } from './peer-change-limit.ts';

export interface Context {
  readonly db: Db;
  readonly now: () => Date;
  /** Milliseconds since 1970 by the clock at start, steady since then even if the clock is set. */
  readonly steadyNow: () => number;
  /** The time of the database, so that processes with different clocks write one audit log. */
  readonly readTime: (db: Db) => Promise<Date>;
  readonly random: Random;
  readonly passwordCost: PasswordCost;
  readonly sessionLimits: SessionLimits;
  /** Logins at an issuer of OpenID Connect; null without one. */
  readonly singleSignOn: SingleSignOn | null;
  /** False if only a reset owner logs in with a password, on this host. */
  readonly allowsPasswords: boolean;
  readonly notifier: ChangeNotifier;
  /** Notifies of changes of a network's health and events. */
  readonly healthNotifier: ChangeNotifier;
  /** Notifies the other processes on the database, like the two notifiers in this process. */
  readonly announce: ControlPlaneStore['announce'];
  readonly isListening: ControlPlaneStore['isListening'];
  /** The events that the webhook receives; empty without a webhook. */
  readonly webhookTypes: ReadonlySet<EventType>;
  readonly peerChangeLimit: PeerChangeLimit;
  /** How often all new peers of a network together may change themselves, by network. */
  readonly newPeerLimit: PeerChangeLimit;
  /** How many peers may enrol, by network. */
  readonly enrollmentLimit: PeerChangeLimit;
  readonly reportLimit: PeerChangeLimit;
  /** How often a peer may state facts about direct paths. */
  readonly pathLimit: PeerChangeLimit;
  /** How many events, and marks in the map as a follower of the relay, reports may cause. */
  readonly reportEventLimit: PeerChangeLimit;
  /** How many events of refused connections a host may cause, and how many each connection. */
  readonly refusalLimit: PeerChangeLimit;
  readonly refusedConnectionLimit: PeerChangeLimit<string>;
  /** How many events of direct paths a network may have, and how many each pair. */
  readonly pathEventLimit: PeerChangeLimit;
  readonly pairEventLimit: PeerChangeLimit<string>;
  /** Must be called when a peer, or rules without a confirmation, may expire before all others. */
  readonly rescheduleExpiry: () => void;
  /** True if the time and source of hosts' requests are stored. */
  readonly keepsPresence: boolean;
  /** True if networks may offer routes to public addresses. */
  readonly allowPublicRoutes: boolean;
  /** The URLs at which browsers open the console; empty for any host. */
  readonly publicUrls: readonly URL[];
  /** True if only this host can connect, so that peers may have loopback addresses. */
  readonly onLoopback: boolean;
}
