import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Network } from '../../contract/network.ts';
import type { NetworkRules } from '../../contract/rules.ts';
import { modeTexts } from '../logic/rules/describe-rules.ts';
import { NetworkFrame } from '../parts/network-frame.tsx';
import { Loading, Problem } from '../parts/request-state.tsx';
import { EnforcementTable, RuleTable, TestTable, Warnings } from '../parts/rules/rule-tables.tsx';
import { RulesEditor } from '../parts/rules/rules-editor.tsx';
import { Unconfirmed } from '../parts/rules/unconfirmed.tsx';
import { now } from '../parts/time.tsx';
import { type RulesReading, type StoredRules, useRules } from '../rules.ts';
import { canAdminister } from '../session.ts';

export function NetworkRulesPage({ id }: { readonly id: number }): JSX.Element {
  return (
    <NetworkFrame id={id} title="rules">
      {(network) => <Rules network={network} />}
    </NetworkFrame>
  );
}

function Rules({ network }: { readonly network: Network }): JSX.Element {
  const [isPending, setPending] = useState(false);
  // A confirmation changes no map. While it is due, each tick of the clock reads again.
  const reading = useRules(network.id, `${network.revision} ${isPending ? now.value : ''}`);
  const { stored, isRead, problem } = reading;
  const isUnconfirmed = stored?.rules.confirm_until !== undefined;
  useEffect(() => setPending(isUnconfirmed), [isUnconfirmed]);
  return (
    <div aria-busy={!isRead}>
      {!isRead && <Loading />}
      <Problem text={problem} />
      {isRead && stored === null && problem === null && <p>This control plane has no rules.</p>}
      {stored !== null && <Stored {...{ network, stored, reading }} />}
    </div>
  );
}

interface StoredProps {
  readonly network: Network;
  readonly stored: StoredRules;
  readonly reading: RulesReading;
}

function Stored({ network, stored, reading }: StoredProps): JSX.Element {
  const [edited, setEdited] = useState<StoredRules | null>(null);
  const { rules } = stored;
  return (
    <>
      {rules.confirm_until !== undefined && (
        <Unconfirmed network={network.id} until={rules.confirm_until} etag={stored.etag} onConfirmed={reading.show} />
      )}
      {edited === null ? (
        <RulesView network={network.id} rules={rules} onEdit={() => setEdited(stored)} />
      ) : (
        <RulesEditor
          network={network}
          stored={edited}
          onApplied={(applied) => {
            reading.show(applied);
            setEdited(null);
          }}
          onReload={() => {
            void reading.refresh();
            setEdited(null);
          }}
          onCancel={() => setEdited(null)}
        />
      )}
    </>
  );
}

interface RulesViewProps {
  readonly network: number;
  readonly rules: NetworkRules;
  readonly onEdit: () => void;
}

function RulesView({ network, rules: stored, onEdit }: RulesViewProps): JSX.Element {
  const { mode, rules, tests, require_enforcement, enforcement, warnings } = stored;
  return (
    <>
      <p class="lead">{modeTexts[mode]}</p>
      <p>{describeMode(mode)}</p>
      {require_enforcement && <p>Only hosts that enforce rules can be reached.</p>}
      {canAdminister() && (
        <div class="actions">
          <button type="button" class="primary" onClick={onEdit}>
            Edit the rules
          </button>
        </div>
      )}
      <h2>Rules</h2>
      {rules.length === 0 ? (
        <div class="empty">
          <p>{mode === 'open' ? 'There is no rule.' : 'There is no rule, so that every connection is denied.'}</p>
        </div>
      ) : (
        <>
          {mode === 'open' && <p>These rules are stored. They apply when the network is closed.</p>}
          <RuleTable rows={rules} />
        </>
      )}
      <Warnings texts={warnings} />
      {tests.length > 0 && (
        <>
          <h2>Tests</h2>
          <p>Rules that fail one of these tests cannot be applied.</p>
          <TestTable rows={tests} />
        </>
      )}
      {enforcement.length > 0 && (
        <>
          <h2>Who enforces the rules</h2>
          <p>
            A host enforces rules for connections to it, and a connector for those to its routes. With “nothing”, update
            cpn on the host.
          </p>
          <EnforcementTable network={network} enforcement={enforcement} />
        </>
      )}
    </>
  );
}

function describeMode(mode: NetworkRules['mode']): string {
  if (mode === 'closed') return 'Ping and TCP port 9 between peers are always allowed, so that hosts find who answers.';
  return canAdminister()
    ? 'To close it, edit the rules: add one for each connection that must stay possible, and choose the mode “closed”.'
    : 'An owner or admin can close it.';
}
