import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { AccessChange, RulesPreview } from '../../../contract/rules.ts';
import { listNames } from '../../../core/util/list-names.ts';
import { announce } from '../../announcer.ts';
import { ApiError } from '../../client.ts';
import { describeChange, describeTested } from '../../logic/rules/describe-rules.ts';
import { type RulesDraft, readSeconds, toSetRules } from '../../logic/rules/draft.ts';
import { applyRules, type StoredRules } from '../../rules.ts';
import { Dialog } from '../forms/dialog.tsx';
import { Check, Field, Form, useIsShown } from '../forms/form.tsx';
import { Problem } from '../request-state.tsx';
import { Table } from '../table.tsx';
import { Warnings } from './rule-tables.tsx';

interface PreviewDialogProps {
  readonly network: number;
  readonly draft: RulesDraft;
  readonly etag: string | null;
  readonly preview: RulesPreview;
  readonly onApplied: (stored: StoredRules) => void;
  /** Leaves the draft for the rules of another user. */
  readonly onReload: () => void;
  readonly onClose: () => void;
}

/** The effects of a draft, and the button that applies it. */
export function PreviewDialog(props: PreviewDialogProps): JSX.Element {
  const { network, draft, etag, preview, onApplied, onReload, onClose } = props;
  const [isTimed, setTimed] = useState(false);
  const [seconds, setSeconds] = useState('60');
  const [isOutdated, setOutdated] = useState(false);
  const isShown = useIsShown();
  const failed = preview.tests.filter(({ passed }) => !passed);
  const apply = async () => {
    const limit = readSeconds(seconds);
    if (isTimed && limit === null) {
      throw new ApiError(422, 'Type 10 to 3600 seconds.', { confirm_within_seconds: ['must be from 10 to 3600'] });
    }
    try {
      const stored = await applyRules(network, toSetRules(draft, isTimed ? limit : null), etag);
      announce('The rules are applied.');
      if (isShown()) onApplied(stored);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 412) throw error;
      if (isShown()) setOutdated(true);
    }
  };
  return (
    <Dialog title="Who gains and who loses what" onClose={onClose}>
      <Effects {...preview} isClosed={draft.mode === 'closed'} />
      {isOutdated ? (
        <>
          <Problem text="The rules changed since you loaded them, and nothing was applied." />
          <div class="actions">
            <button type="button" class="primary" onClick={onReload}>
              Load the present rules
            </button>
            <button type="button" onClick={onClose}>
              Close
            </button>
          </div>
        </>
      ) : failed.length > 0 ? (
        <>
          <Problem text="A test fails, so that these rules cannot be applied. Change the rules or the test." />
          <div class="actions">
            <button type="button" onClick={onClose}>
              Close
            </button>
          </div>
        </>
      ) : (
        <Form submit="Apply" onSubmit={apply} onCancel={onClose}>
          <Check
            label="Return to the earlier rules unless I confirm the new ones"
            isChecked={isTimed}
            onChange={setTimed}
          />
          {isTimed && (
            <Field
              label="Seconds to confirm"
              name="confirm_within_seconds"
              type="number"
              value={seconds}
              onChange={setSeconds}
              hint="10 to 3600. The control plane returns to the earlier rules, also if it does not reach this browser."
            />
          )}
        </Form>
      )}
    </Dialog>
  );
}

interface EffectsProps extends RulesPreview {
  /** An open network needs no enforcement. */
  readonly isClosed: boolean;
}

function Effects(props: EffectsProps): JSX.Element {
  const { gained, gained_count, lost, lost_count, complete, tests, enforcement, refused, warnings, isClosed } = props;
  const failed = tests.filter(({ passed }) => !passed);
  return (
    <>
      {complete && gained_count + lost_count === 0 && <p>No connection is gained or lost.</p>}
      {!complete && <p>The rules name too many peers one by one: there may be more gains and losses than these.</p>}
      <Changes title="Gained" changes={gained} count={gained_count} />
      <Changes title="Lost" changes={lost} count={lost_count} />
      {failed.length > 0 && (
        <>
          <h3>Tests that fail</h3>
          <ul>
            {failed.map((test, at) => (
              <li key={at} class="problem">
                <code>{test.from}</code> to <code>{test.to}</code>, {describeTested(test)}, must be{' '}
                {test.expect === 'allow' ? 'allowed' : 'denied'}: {test.why}
              </li>
            ))}
          </ul>
        </>
      )}
      {tests.length > 0 && failed.length === 0 && (
        <p class="done">
          <span aria-hidden="true">✓ </span>
          {tests.length === 1 ? 'The test passes.' : `All ${tests.length} tests pass.`}
        </p>
      )}
      <Warnings texts={warnings} />
      {isClosed && enforcement.length > 0 && (
        <p class="problem">
          <span aria-hidden="true">✕ </span>
          Nothing enforces the rules for connections to {listNames(enforcement.map(({ peer }) => peer.name))}: update
          cpn on {enforcement.length === 1 ? 'this host' : 'these hosts'}, or choose “Only hosts that enforce rules can
          be reached”.
        </p>
      )}
      {refused.length > 0 && (
        <>
          <h3>Refused, although a rule allows them</h3>
          <ul>
            {refused.map(({ from, to, why }) => (
              <li key={`${from} ${to}`}>
                <code>{from}</code> to <code>{to}</code>: {why}
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

interface ChangesProps {
  readonly title: string;
  readonly changes: readonly AccessChange[];
  readonly count: number;
}

function Changes({ title, changes, count }: ChangesProps): JSX.Element | null {
  if (count === 0) return null;
  return (
    <>
      <h3>
        {title}: {count}
      </h3>
      <Table
        label={title}
        rows={changes}
        keyOf={({ from, to, protocol, ports }) => `${from} ${to} ${protocol} ${ports.join()}`}
        columns={[
          { title: 'From', cell: ({ from }) => <code>{from}</code> },
          { title: 'To', cell: ({ to }) => <code>{to}</code> },
          { title: 'Connections', cell: describeChange },
        ]}
      />
      {count > changes.length && <p class="hint">The first {changes.length} are shown.</p>}
    </>
  );
}
