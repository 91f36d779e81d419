import { type ComponentChildren, createContext, type JSX } from 'preact';
import { useContext, useEffect, useId, useRef, useState } from 'preact/hooks';
import { ApiError } from '../../client.ts';
import { toSentence } from '../../logic/text/format.ts';
import { Problem, Spinner } from '../request-state.tsx';

const FieldErrors = createContext<ApiError['fields']>({});

/** The problems of a field of the form, from the last time it was sent. */
export const useFieldProblems = (name: string) => useContext(FieldErrors)[name] ?? [];

interface FormProps {
  readonly submit: string;
  /** Sends the form. A thrown error is shown, with the rules of a 422 at their fields. */
  readonly onSubmit: () => Promise<unknown>;
  readonly onCancel?: () => void;
  readonly isDangerous?: boolean;
  /** True if the page has another form with the primary button. */
  readonly isSecondary?: boolean;
  readonly children?: ComponentChildren;
}

export function Form(props: FormProps): JSX.Element {
  const { submit, onSubmit, onCancel, isDangerous = false, isSecondary = false, children } = props;
  const rank = isDangerous ? 'danger' : isSecondary ? '' : 'primary';
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  // At the second click, the state of the first may not be rendered yet.
  const isRunning = useRef(false);
  const place = useRef<HTMLFormElement>(null);
  const run = async (event: Event) => {
    event.preventDefault();
    if (isRunning.current) return;
    isRunning.current = true;
    setBusy(true);
    setError(null);
    try {
      await onSubmit();
    } catch (thrown) {
      setError(thrown instanceof Error ? thrown : new Error(String(thrown)));
    } finally {
      isRunning.current = false;
      setBusy(false);
    }
  };
  const fields = error instanceof ApiError ? error.fields : {};
  const names = Object.keys(fields);
  const find = (name: string) =>
    place.current?.querySelector<HTMLElement>(`[name="${CSS.escape(name)}"][aria-invalid]`);
  const isAtFields = names.length > 0 && names.every(find);
  // A screen reader reads the problem of the focused field.
  useEffect(() => {
    if (isAtFields) place.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [error]);
  return (
    <form ref={place} onSubmit={(event) => void run(event)} noValidate>
      <FieldErrors.Provider value={fields}>{children}</FieldErrors.Provider>
      <Problem text={isAtFields ? null : (error?.message ?? null)} />
      <div class="actions">
        <button type="submit" class={rank} aria-disabled={isBusy}>
          {isBusy && <Spinner />}
          {submit}
        </button>
        {onCancel && (
          <button type="button" onClick={onCancel}>
            Cancel
          </button>
        )}
      </div>
    </form>
  );
}

interface FieldProps {
  readonly label: string;
  /** The API's field, whose broken rules are shown here. */
  readonly name: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly hint?: ComponentChildren;
  readonly type?: 'text' | 'email' | 'password' | 'number' | 'search';
  readonly autocomplete?: string;
  /** True for a field of digits, for which phones show their keys. */
  readonly isDigits?: boolean;
  readonly isMultiline?: boolean;
  readonly isRequired?: boolean;
  readonly placeholder?: string;
  /** The width of the field, in characters of its usual content. */
  readonly chars?: number;
}

/** A search field fills the remaining width. */
const usualChars: Readonly<Record<NonNullable<FieldProps['type']>, number | undefined>> = {
  ...{ text: 28, email: 32, password: 28, number: 6, search: undefined },
};

export function Field(props: FieldProps): JSX.Element {
  const { label, name, value, onChange, hint, type = 'text', isMultiline = false, isRequired = false } = props;
  const id = useId();
  const problems = useFieldProblems(name);
  const { chars = usualChars[type] } = props;
  const common = {
    id,
    name,
    value,
    required: isRequired,
    ...(chars !== undefined && { style: { width: `calc(${chars}ch + 2.5rem)` } }),
    'aria-invalid': problems.length > 0,
    'aria-describedby': `${id}-hint ${id}-problem`,
    onInput: (event: Event) => onChange((event.currentTarget as HTMLInputElement).value),
    ...(props.isDigits && { inputMode: 'numeric' as const }),
    ...(props.placeholder !== undefined && { placeholder: props.placeholder }),
  };
  const technical = { autocapitalize: 'none', spellcheck: false } as const;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {isMultiline ? (
        <textarea rows={3} {...common} {...technical} />
      ) : (
        <input type={type as 'text'} autocomplete={props.autocomplete ?? 'off'} {...common} {...technical} />
      )}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      <FieldProblems id={`${id}-problem`} label={label} problems={problems} />
    </div>
  );
}

interface FieldProblemsProps {
  readonly id: string;
  readonly label: string;
  readonly problems: readonly string[];
}

/** The problems of a field, each read after its label. */
export function FieldProblems({ id, label, problems }: FieldProblemsProps): JSX.Element | null {
  if (problems.length === 0) return null;
  return (
    <p class="problem" id={id}>
      <span aria-hidden="true">✕ </span>
      {problems.map((rule) => toSentence(`${label} ${rule}`)).join(' ')}
    </p>
  );
}

interface CheckProps {
  readonly label: string;
  readonly isChecked: boolean;
  readonly onChange: (isChecked: boolean) => void;
}

export function Check({ label, isChecked, onChange }: CheckProps): JSX.Element {
  return (
    <label class="check">
      <input type="checkbox" checked={isChecked} onChange={(event) => onChange(event.currentTarget.checked)} /> {label}
    </label>
  );
}

interface ChoiceProps<Value extends string> {
  readonly label: string;
  readonly name: string;
  readonly value: Value;
  readonly options: readonly (readonly [Value, string])[];
  readonly onChange: (value: Value) => void;
  readonly hint?: string;
}

export function Choice<Value extends string>(props: ChoiceProps<Value>): JSX.Element {
  const { label, name, value, options, onChange, hint } = props;
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        name={name}
        value={value}
        aria-describedby={`${id}-hint`}
        onChange={(event) => onChange(event.currentTarget.value as Value)}
      >
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

/** Returns a function that is true while the component is mounted, to be called after a request. */
export function useIsShown(): () => boolean {
  const isShown = useRef(true);
  useEffect(
    () => () => {
      isShown.current = false;
    },
    [],
  );
  return () => isShown.current;
}
