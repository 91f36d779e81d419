import type { JSX } from 'preact';

/** A problem, which a screen reader reads immediately. */
export function Problem({ text }: { readonly text: string | null }): JSX.Element {
  return (
    <div role="alert">
      {text !== null && (
        <p class="problem">
          <span aria-hidden="true">✕ </span>
          {text}
        </p>
      )}
    </div>
  );
}
