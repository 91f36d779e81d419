import type { JSX } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import type { Network } from '../../../contract/network.ts';
import type { AccessRule, RulesMode, RulesPreview, RuleTest } from '../../../contract/rules.ts';
import { ApiError } from '../../client.ts';
import { describeProblems } from '../../logic/rules/describe-rules.ts';
import { isUnchanged, moveItem, type RulesDraft, setItem, toDraft, toSetRules } from '../../logic/rules/draft.ts';
import { listSelectors } from '../../logic/rules/selectors.ts';
import { previewRules, type StoredRules } from '../../rules.ts';
import { BusyButton } from '../forms/busy-button.tsx';
import { Check, Choice, useIsShown } from '../forms/form.tsx';
import { Problem } from '../request-state.tsx';
import { PreviewDialog } from './preview-dialog.tsx';
import { RuleDialog } from './rule-dialog.tsx';
import { RuleTable, TestTable } from './rule-tables.tsx';
import { TestDialog } from './test-dialog.tsx';

interface RulesEditorProps {
  readonly network: Network;
  /** The rules that the user saw when the edit began. */
  readonly stored: StoredRules;
  readonly onApplied: (stored: StoredRules) => void;
  /** Drops the draft and reads the present rules. */
  readonly onReload: () => void;
  readonly onCancel: () => void;
}

type Opened =
  | { readonly list: 'rules' | 'tests'; readonly at: number }
  | { readonly list: 'preview'; readonly preview: RulesPreview }
  | null;

const modes: readonly (readonly [RulesMode, string])[] = [
  ['open', 'open'],
  ['closed', 'closed'],
];

const modeHints: Readonly<Record<RulesMode, string>> = {
  open: 'Every peer reaches every peer and route. Rules are stored, and apply once the mode is “closed”.',
  closed: 'What no rule allows is denied.',
};

/** Edits a draft of the rules. The preview applies it. */
export function RulesEditor({ network, stored, onApplied, onReload, onCancel }: RulesEditorProps): JSX.Element {
  const [draft, setDraft] = useState<RulesDraft>(() => toDraft(stored.rules));
  const [opened, setOpened] = useState<Opened>(null);
  const [problems, setProblems] = useState<readonly string[]>([]);
  const selectors = useMemo(() => listSelectors(network, draft.rules), [network, draft.rules]);
  const isShown = useIsShown();
  const change = (fields: Partial<RulesDraft>) => setDraft((before) => ({ ...before, ...fields }));
  const close = () => setOpened(null);
  const preview = async () => {
    setProblems([]);
    try {
      const effects = await previewRules(network.id, toSetRules(draft));
      if (isShown()) setOpened({ list: 'preview', preview: effects });
    } catch (error) {
      setProblems(listProblems(error, draft));
    }
  };
  return (
    <>
      <Choice<RulesMode>
        label="Mode"
        name="mode"
        value={draft.mode}
        options={modes}
        onChange={(mode) => change({ mode })}
        hint={modeHints[draft.mode]}
      />
      <Check
        label="Only hosts that enforce rules can be reached"
        isChecked={draft.require_enforcement}
        onChange={(require_enforcement) => change({ require_enforcement })}
      />
      <h2>Rules</h2>
      {draft.rules.length > 0 && (
        <RuleTable
          rows={draft.rules}
          actions={(rule, at) => (
            <ItemActions
              {...{ name: rule.name, at, items: draft.rules }}
              onOpen={() => setOpened({ list: 'rules', at })}
              onChange={(rules) => change({ rules })}
            />
          )}
        />
      )}
      <div class="actions">
        <button type="button" onClick={() => setOpened({ list: 'rules', at: draft.rules.length })}>
          Add a rule
        </button>
      </div>
      <h2>Tests</h2>
      <p>A test names a connection that must be allowed or denied. Rules that fail a test cannot be applied.</p>
      {draft.tests.length > 0 && (
        <TestTable
          rows={draft.tests}
          actions={({ from, to }, at) => (
            <ItemActions
              {...{ name: `${from} to ${to}`, at, items: draft.tests }}
              onOpen={() => setOpened({ list: 'tests', at })}
              onChange={(tests) => change({ tests })}
            />
          )}
        />
      )}
      <div class="actions">
        <button type="button" onClick={() => setOpened({ list: 'tests', at: draft.tests.length })}>
          Add a test
        </button>
      </div>
      {problems.map((problem) => (
        <Problem key={problem} text={problem} />
      ))}
      <div class="actions">
        <BusyButton class="primary" onClick={preview}>
          Preview
        </BusyButton>
        <button type="button" onClick={onCancel}>
          {isUnchanged(draft, stored.rules) ? 'Back' : 'Discard the changes'}
        </button>
      </div>
      {opened?.list === 'rules' && (
        <RuleDialog
          rule={draft.rules[opened.at] ?? null}
          others={draft.rules.filter((_, at) => at !== opened.at)}
          selectors={selectors}
          onSave={(rule: AccessRule) => {
            change({ rules: setItem(draft.rules, opened.at, rule) });
            close();
          }}
          onClose={close}
        />
      )}
      {opened?.list === 'tests' && (
        <TestDialog
          test={draft.tests[opened.at] ?? null}
          selectors={selectors}
          onSave={(test: RuleTest) => {
            change({ tests: setItem(draft.tests, opened.at, test) });
            close();
          }}
          onClose={close}
        />
      )}
      {opened?.list === 'preview' && (
        <PreviewDialog
          network={network.id}
          draft={draft}
          etag={stored.etag}
          preview={opened.preview}
          onApplied={onApplied}
          onReload={onReload}
          onClose={close}
        />
      )}
    </>
  );
}

function listProblems(error: unknown, draft: RulesDraft): readonly string[] {
  const fields = error instanceof ApiError ? describeProblems(error.fields, draft) : [];
  if (fields.length > 0) return fields;
  return [error instanceof Error ? error.message : String(error)];
}

interface ItemActionsProps<Item> {
  readonly name: string;
  readonly at: number;
  readonly items: readonly Item[];
  readonly onOpen: () => void;
  readonly onChange: (items: Item[]) => void;
}

function ItemActions<Item>({ name, at, items, onOpen, onChange }: ItemActionsProps<Item>): JSX.Element {
  const place = useRef<HTMLSpanElement>(null);
  /** A row that moves loses the focus, and a button at the end of the list is gone. */
  const move = (by: -1 | 1, pressed: HTMLElement) => {
    onChange(moveItem(items, at, by));
    setTimeout(() => {
      if (pressed.isConnected) pressed.focus();
      else place.current?.querySelector('button')?.focus();
    });
  };
  const button = (text: string, onClick: (event: { readonly currentTarget: HTMLElement }) => void) => (
    <button type="button" onClick={onClick}>
      {text}
      <span class="hidden"> {name}</span>
    </button>
  );
  return (
    <span ref={place}>
      {button('Change', onOpen)}
      {at > 0 && button('Up', ({ currentTarget }) => move(-1, currentTarget))}
      {at < items.length - 1 && button('Down', ({ currentTarget }) => move(1, currentTarget))}
      {button('Remove', () => onChange(items.filter((_, other) => other !== at)))}
    </span>
  );
}
