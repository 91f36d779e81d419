import type { ComponentChildren, JSX } from 'preact';
import type { Polled } from '../polled.ts';

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

export const Pending = () => <span class="waiting">…</span>;

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

interface ListProps<Item> {
  readonly from: Polled<Item>;
  /** Content for an empty list: what to do, or the command for it. */
  readonly empty: ComponentChildren;
  readonly children: (items: readonly Item[]) => ComponentChildren;
}

/** A list, or its loading, failed or empty state. */
export function List<Item>({ from: { items, problem }, empty, children }: ListProps<Item>): JSX.Element {
  return (
    <div aria-busy={items === null && problem === null}>
      <Problem text={problem} />
      {items === null && problem === null && <Loading />}
      {items !== null && (items.length === 0 ? <div class="empty">{empty}</div> : children(items))}
    </div>
  );
}
