import { CpnError, printable, quote } from './cpn-error.ts';

const nextTries = {
  changed: 'it is not tried again until the network changes',
  repeated: 'it is applied when the control plane sends the same again half a minute later',
  later: 'the daemon tries it again in ten minutes, or when something else changes',
} as const;

/** What was not confirmed. */
interface Tried {
  /** Of the newest map; null where the service names none. */
  readonly revision: string | null;
  /** What of the network itself the change takes away; null where it takes away nothing of it. */
  readonly loss: string | null;
  /** When it is tried again. */
  readonly again: keyof typeof nextTries;
  readonly withinMs: number;
}

/** After a change nobody answered who answered before; the host was made again what it was. */
export class NotConfirmed extends CpnError {
  override readonly name = 'NotConfirmed';

  constructor(networkInterface: string, { revision, loss, again, withinMs }: Tried) {
    const map = revision ? `revision ${printable(revision)}` : 'the newest map';
    const what = again === 'later' ? 'what is around this host now' : map;
    const silence =
      loss === null
        ? `with ${what} neither the control plane nor a peer that answered before was heard`
        : `with ${what} it loses ${loss}, and no retained peer that had a handshake answered`;
    super(`${networkInterface} was changed back: ${silence} within ${withinMs / 1000} s; ${nextTries[again]}`, {
      facts: { interface: networkInterface, revision, loss, withinMs },
    });
  }
}

/** With other options nobody answered who answered before; the host has the ones again that it had. */
export class NotKept extends CpnError {
  override readonly name = 'NotKept';

  constructor(networkInterface: string, withinMs: number) {
    super(
      `the options of ${networkInterface} are what they were before: with the new ones neither the control plane nor a peer that answered before was heard within ${withinMs / 1000} s; try others, or a longer --confirm-within`,
      { facts: { interface: networkInterface, withinMs } },
    );
  }
}

/** A signal came before a change was confirmed; what was begun was taken back. */
export class Interrupted extends CpnError {
  override readonly name = 'Interrupted';

  constructor(signal: string) {
    super(`${signal} came before the change was confirmed, so it was taken back; run the command again to make it`, {
      facts: { signal },
    });
  }
}

/** An answer of the control plane would take away all that this host reaches, and no second one confirmed it yet. */
export class Unconfirmed extends CpnError {
  override readonly name = 'Unconfirmed';

  constructor(url: string, problem: string, seconds: number) {
    super(
      `the control plane at ${url} ${problem}; the tunnel stays as it is until a second answer, ${seconds} s later or more, says the same`,
      { facts: { url, problem }, retry: true },
    );
  }
}

/** Of a peer another thing is claimed than what a person was shown. */
export class ClaimChanged extends CpnError {
  override readonly name = 'ClaimChanged';

  constructor(peer: string, claimed: string) {
    super(
      `nothing was accepted of ${quote(peer)}: what is claimed of it became another thing meanwhile (${claimed}); look at "cpn status", and accept that or not`,
      { facts: { peer, claimed } },
    );
  }
}

/** Nobody who answered before answered to a new key; the old one is in use again. */
export class NotRotated extends CpnError {
  override readonly name = 'NotRotated';

  constructor(networkInterface: string, withinMs: number) {
    super(
      `the key of ${networkInterface} was changed back: within ${withinMs / 1000} s no peer that answered before answered to the new one; peers that are not told of changes at once need a longer --confirm-within`,
      { facts: { interface: networkInterface, withinMs }, retry: true },
    );
  }
}

/** A change of keys was begun, and cannot be ended yet; it goes on by itself. */
export class RotationPending extends CpnError {
  override readonly name = 'RotationPending';

  constructor(networkInterface: string, problem: string, cause?: unknown) {
    super(
      `the change of the key of ${networkInterface} is not over: ${problem}; the daemon, or the next "cpn reconcile", goes on with it`,
      { facts: { interface: networkInterface, problem }, cause, retry: true },
    );
  }
}
