import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { announce } from '../../announcer.ts';
import { countSeconds } from '../../logic/rules/describe-rules.ts';
import { formatSeconds } from '../../logic/text/format.ts';
import { confirmRules, type StoredRules } from '../../rules.ts';
import { canAdminister } from '../../session.ts';
import { Form } from '../forms/form.tsx';

interface UnconfirmedProps {
  readonly network: number;
  readonly until: string;
  readonly etag: string | null;
  readonly onConfirmed: (stored: StoredRules) => void;
}

/** The time until the earlier rules return, and the button that keeps these. */
export function Unconfirmed({ network, until, etag, onConfirmed }: UnconfirmedProps): JSX.Element {
  const seconds = useSecondsLeft(until);
  const confirm = async () => {
    const stored = await confirmRules(network, etag);
    announce('The rules are confirmed.');
    onConfirmed(stored);
  };
  return (
    <section class="panel" aria-label="Rules that are not confirmed">
      <p role="timer" class="lead">
        {seconds === 0
          ? 'The earlier rules return now.'
          : `The earlier rules return in ${formatSeconds(seconds)}, unless a user confirms these.`}
      </p>
      {canAdminister() && <Form submit="Confirm" onSubmit={confirm} />}
    </section>
  );
}

const intervalMs = 1000;

function useSecondsLeft(until: string): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), intervalMs);
    return () => clearInterval(timer);
  }, []);
  return countSeconds(until, now);
}
