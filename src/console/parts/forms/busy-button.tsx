import type { ComponentChildren, JSX } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { Spinner } from '../request-state.tsx';

interface BusyButtonProps {
  readonly onClick: () => Promise<unknown>;
  readonly children: ComponentChildren;
  readonly class?: string;
}

/** A button for a slow action. Clicks during the action do nothing. */
export function BusyButton({ onClick, children, class: name = '' }: BusyButtonProps): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  // At the second click, the state of the first may not be rendered yet.
  const isRunning = useRef(false);
  const run = async () => {
    if (isRunning.current) return;
    isRunning.current = true;
    setBusy(true);
    try {
      await onClick();
    } finally {
      isRunning.current = false;
      setBusy(false);
    }
  };
  return (
    <button type="button" class={name} aria-disabled={isBusy} onClick={() => void run()}>
      {isBusy && <Spinner />}
      {children}
    </button>
  );
}
