import type { ComponentChildren, JSX } from 'preact';
import type { Polled } from '../polled.ts';
import { Problem } from './problem.tsx';
import { Loading } from './spinner.tsx';

interface ListProps<Item> {
  readonly from: Polled<Item>;
  /** Shown where there is nothing: what to do, or to type. */
  readonly empty: ComponentChildren;
  readonly children: (items: readonly Item[]) => ComponentChildren;
}

/** A list that is being read, cannot be read, is empty, or is shown. */
export function List<Item>({ from: { items, problem }, empty, children }: ListProps<Item>): JSX.Element {
  return (
    <div aria-busy={items === null && problem === null}>
      <Problem text={problem} />
      {items === null && problem === null && <Loading />}
      {items !== null && (items.length === 0 ? <div class="empty">{empty}</div> : children(items))}
    </div>
  );
}
