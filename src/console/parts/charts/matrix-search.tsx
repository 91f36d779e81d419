import type { JSX } from 'preact';
import { Field } from '../forms/form.tsx';
import { Matrix, type MatrixProps } from './matrix.tsx';

interface MatrixSearchProps {
  readonly from: string;
  readonly to: string;
  readonly onChange: (fields: { readonly from?: string; readonly to?: string }) => void;
  /** How much of the matrix is shown. */
  readonly counts: string;
  /** Shows everything again. Absent without a filter. */
  readonly onClear?: () => void;
}

/** The words to find in the peers of rows and of columns. */
export function MatrixSearch({ from, to, onChange, counts, onClear }: MatrixSearchProps): JSX.Element {
  const placeholder = 'Name, address, type or route';
  return (
    <div class="search">
      <Field
        label="From"
        name="from"
        type="search"
        value={from}
        onChange={(text) => onChange({ from: text })}
        placeholder={placeholder}
      />
      <Field
        label="To"
        name="to"
        type="search"
        value={to}
        onChange={(text) => onChange({ to: text })}
        placeholder={placeholder}
      />
      <p aria-live="polite">{counts}</p>
      {onClear && (
        <button type="button" onClick={onClear}>
          Show all
        </button>
      )}
    </div>
  );
}

/** The matrix, or what to do if a filter leaves no cell. */
export function MatrixOrNothing(props: MatrixProps): JSX.Element {
  const isEmpty = props.rows.length === 0 || props.columns.length === 0;
  return (
    <>
      {isEmpty ? (
        <div class="empty">
          <p>No pair of peers matches. Type less in “From” and “To”, or click “Show all”.</p>
        </div>
      ) : (
        <Matrix {...props} />
      )}
      <p class="hint">Click a cell to see why. With the keyboard: arrows move, Enter opens.</p>
    </>
  );
}
