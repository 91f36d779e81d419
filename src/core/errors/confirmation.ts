import { CpnError, quote } from './cpn-error.ts';
import { printable } from './printable.ts';

const nextTries = {
  changed: 'not retried until the network changes',
  repeated: 'it is applied if the control plane sends the same again after 30 s',
  later: 'the daemon retries in 10 minutes, or after the next change',
  stopped: 'the daemon retries when it starts again',
} as const;

interface UnconfirmedChange {
  /** The revision of the newest map. Null if the control plane sends none. */
  readonly revision: string | null;
  /** The part of the network that the change removes. Null if it removes nothing. */
  readonly loss: string | null;
  /** The time of the next attempt. */
  readonly again: keyof typeof nextTries;
  readonly withinMs: number;
}

/** No peer or control plane that replied before a change replied after it. It was rolled back. */
export class NotConfirmed extends CpnError {
  override readonly name = 'NotConfirmed';

  constructor(networkInterface: string, { revision, loss, again, withinMs }: UnconfirmedChange) {
    const map = revision ? `revision ${printable(revision)}` : 'the newest map';
    const what = again === 'later' ? "the host's current underlay" : map;
    const silence =
      loss === null
        ? `with ${what} neither the control plane nor a peer that answered before responded`
        : `with ${what} it loses ${loss}, and no retained peer that had a handshake responded`;
    const end = again === 'stopped' ? 'before the daemon stopped' : `within ${withinMs / 1000} s`;
    super(`${networkInterface} was rolled back: ${silence} ${end}; ${nextTries[again]}`, {
      facts: { interface: networkInterface, revision, loss, withinMs },
      // The next pass uses the restored state.
      isRetryable: true,
    });
  }
}

/** As {@link NotConfirmed}, for new options. The old options are restored. */
export class NotKept extends CpnError {
  override readonly name = 'NotKept';

  /** @param url the new control plane, if it changes: a peer alone does not confirm it */
  constructor(networkInterface: string, withinMs: number, url: string | null = null) {
    const silence =
      url === null
        ? 'neither the control plane nor a peer that answered before responded'
        : `the control plane at ${url}, or a peer that answered before, did not respond`;
    super(
      `the options of ${networkInterface} were rolled back: with the new ones ${silence} within ${withinMs / 1000} s; try others, or a longer --confirm-within`,
      { facts: { interface: networkInterface, withinMs } },
    );
  }
}

/** A signal interrupted a change before it was confirmed. The change was rolled back. */
export class Interrupted extends CpnError {
  override readonly name = 'Interrupted';

  constructor(signal: string) {
    super(
      `${signal} interrupted the change before it was confirmed; it was rolled back; run the command again to retry`,
      {
        facts: { signal },
      },
    );
  }
}

/** A reply would remove all that this host reaches, and no second reply has confirmed it yet. */
export class Unconfirmed extends CpnError {
  override readonly name = 'Unconfirmed';

  constructor(url: string, problem: string, seconds: number) {
    super(
      `the control plane at ${url} ${problem}; the tunnel stays unchanged until a second reply, at least ${seconds} s later, confirms it`,
      { facts: { url, problem }, isRetryable: true },
    );
  }
}

/** The mismatch of a peer changed after the user saw it. */
export class MismatchChanged extends CpnError {
  override readonly name = 'MismatchChanged';

  constructor(peer: string, claimed: string) {
    super(
      `nothing was accepted for ${quote(peer)}: the peer changed again (${claimed}); check "cpn status" and run "cpn accept" again`,
      { facts: { peer, claimed } },
    );
  }
}

/** No peer that replied before completed a handshake with the new key. The old key is restored. */
export class NotRotated extends CpnError {
  override readonly name = 'NotRotated';

  constructor(networkInterface: string, withinMs: number) {
    super(
      `the key of ${networkInterface} was rolled back: no peer that answered before completed a handshake with the new key within ${withinMs / 1000} s; peers that poll need a longer --confirm-within`,
      { facts: { interface: networkInterface, withinMs }, isRetryable: true },
    );
  }
}

/** A key rotation is incomplete and continues later. */
export class RotationPending extends CpnError {
  override readonly name = 'RotationPending';

  constructor(networkInterface: string, problem: string, cause?: unknown) {
    super(
      `the key rotation of ${networkInterface} is incomplete: ${problem}; the daemon, or the next "cpn reconcile", continues it`,
      { facts: { interface: networkInterface, problem }, cause, isRetryable: true },
    );
  }
}
