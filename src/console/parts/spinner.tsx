import type { JSX } from 'preact';

/** A request is under way. */
export function Spinner(): JSX.Element {
  return <span class="spinner" aria-hidden="true" />;
}

/** What is being read. It appears after a moment, so that a quick reply shows no flicker. */
export function Loading({ what = 'Loading' }: { readonly what?: string }): JSX.Element {
  return (
    <p class="loading" role="status">
      <Spinner />
      {what} …
    </p>
  );
}

/** The place of a value that is being read. */
export const Pending = () => <span class="waiting">…</span>;
