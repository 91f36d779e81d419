import type { ComponentChildren, JSX } from 'preact';
import type { Polled } from '../polled.ts';
import { Problem } from './problem.tsx';
import { Loading } from './spinner.tsx';

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
