import type { JSX } from 'preact';

export function Spinner(): JSX.Element {
  return <span class="spinner" aria-hidden="true" />;
}

/** A loading text. It appears after a moment, so that a quick reply causes no flicker. */
export function Loading({ what = 'Loading' }: { readonly what?: string }): JSX.Element {
  return (
    <p class="loading" role="status">
      <Spinner />
      {what} …
    </p>
  );
}

/** The placeholder of a value that is loading. */
export const Pending = () => <span class="waiting">…</span>;
