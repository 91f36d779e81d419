import type { JSX } from 'preact';
import { useId, useRef } from 'preact/hooks';
import { addSelector, suggestSelectors } from '../../logic/rules/selectors.ts';
import { FieldProblems, useFieldProblems } from '../forms/form.tsx';

interface SelectorInputProps {
  readonly label: string;
  /** The API's field, whose broken rules are shown here. */
  readonly name: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  /** The selectors to choose from. Others can be typed. */
  readonly selectors: readonly string[];
}

/** A field for one selector, chosen from names or typed. */
export function SelectorInput({ label, name, value, onChange, selectors }: SelectorInputProps): JSX.Element {
  const id = useId();
  const problems = useFieldProblems(name);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <Typed {...{ id, name, value, onChange }} isInvalid={problems.length > 0} options={suggest(selectors, value)} />
      <FieldProblems id={`${id}-problem`} label={label} problems={problems} />
    </div>
  );
}

interface SelectorFieldProps extends Omit<SelectorInputProps, 'value' | 'onChange'> {
  readonly chosen: readonly string[];
  /** The text that is not in the list yet. */
  readonly typed: string;
  readonly onChange: (chosen: readonly string[], typed: string) => void;
}

/** A field for several selectors: a list, and an input that adds to it. */
export function SelectorField(props: SelectorFieldProps): JSX.Element {
  const { label, name, chosen, typed, onChange, selectors } = props;
  const id = useId();
  const place = useRef<HTMLFieldSetElement>(null);
  const problems = useFieldProblems(name);
  const focus = () => place.current?.querySelector('input')?.focus();
  const add = () => {
    onChange(addSelector(chosen, typed), '');
    focus();
  };
  const remove = (selector: string) => {
    onChange(
      chosen.filter((each) => each !== selector),
      typed,
    );
    focus();
  };
  return (
    <fieldset ref={place} class="field selectors">
      <legend>{label}</legend>
      {chosen.length > 0 && (
        <ul>
          {chosen.map((selector) => (
            <li key={selector}>
              <code>{selector}</code>
              <button type="button" onClick={() => remove(selector)}>
                <span aria-hidden="true">✕</span>
                <span class="hidden">
                  Remove {selector} from {label}
                </span>
              </button>
            </li>
          ))}
        </ul>
      )}
      <label for={id} class="hidden">
        Add to {label}
      </label>
      <div class="actions">
        <Typed
          {...{ id, name, value: typed }}
          onChange={(text) => onChange(chosen, text)}
          onEnter={add}
          isInvalid={problems.length > 0}
          options={suggest(selectors, typed, chosen)}
        />
        <button type="button" onClick={add}>
          Add<span class="hidden"> to {label}</span>
        </button>
      </div>
      <FieldProblems id={`${id}-problem`} label={label} problems={problems} />
    </fieldset>
  );
}

/** A browser shows no list whose only entry is the typed text. */
function suggest(selectors: readonly string[], typed: string, chosen: readonly string[] = []): readonly string[] {
  return suggestSelectors(selectors, typed, chosen).filter((selector) => selector !== typed);
}

interface TypedProps {
  readonly id: string;
  readonly name: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly onEnter?: () => void;
  readonly isInvalid: boolean;
  readonly options: readonly string[];
}

function Typed({ id, name, value, onChange, onEnter, isInvalid, options }: TypedProps): JSX.Element {
  const onKeyDown = (event: KeyboardEvent) => {
    // With an empty field, Enter sends the form.
    if (event.key !== 'Enter' || onEnter === undefined || value.trim() === '') return;
    event.preventDefault();
    onEnter();
  };
  return (
    <>
      <input
        id={id}
        name={name}
        value={value}
        list={`${id}-options`}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        placeholder="peer:db, tag:web, any"
        aria-invalid={isInvalid}
        aria-describedby={`${id}-problem`}
        onInput={(event) => onChange(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <datalist id={`${id}-options`}>
        {options.map((option) => (
          <option key={option} value={option} />
        ))}
      </datalist>
    </>
  );
}
