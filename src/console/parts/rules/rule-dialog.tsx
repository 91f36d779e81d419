import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { AccessRule, RuleProtocol } from '../../../contract/rules.ts';
import { ApiError } from '../../client.ts';
import { checkRule, hasPorts } from '../../logic/rules/draft.ts';
import { addSelector } from '../../logic/rules/selectors.ts';
import { splitWords } from '../../logic/text/format.ts';
import { Dialog } from '../forms/dialog.tsx';
import { Choice, Field, Form } from '../forms/form.tsx';
import { SelectorField } from './selector-field.tsx';

const protocols: readonly (readonly [RuleProtocol, string])[] = [
  ['any', 'any'],
  ['tcp', 'TCP'],
  ['udp', 'UDP'],
  ['icmp', 'ICMP'],
];

interface RuleDialogProps {
  /** Null for a new rule. */
  readonly rule: AccessRule | null;
  readonly others: readonly AccessRule[];
  readonly selectors: readonly string[];
  readonly onSave: (rule: AccessRule) => void;
  readonly onClose: () => void;
}

/** Changes a rule of the draft. Nothing is sent. */
export function RuleDialog({ rule, others, selectors, onSave, onClose }: RuleDialogProps): JSX.Element {
  const [name, setName] = useState(rule?.name ?? '');
  const [from, setFrom] = useState<Chosen>({ chosen: rule?.from ?? [], typed: '' });
  const [to, setTo] = useState<Chosen>({ chosen: rule?.to ?? [], typed: '' });
  const [protocol, setProtocol] = useState<RuleProtocol>(rule?.protocol ?? 'tcp');
  const [ports, setPorts] = useState((rule?.ports ?? []).join(' '));
  const save = async () => {
    const typed = {
      name: name.trim(),
      from: [...addSelector(from.chosen, from.typed)],
      to: [...addSelector(to.chosen, to.typed)],
      protocol,
      ports: hasPorts(protocol) ? splitWords(ports) : [],
    };
    const problems = checkRule(typed, others);
    if (Object.keys(problems).length > 0) throw new ApiError(422, 'The rule is not complete.', problems);
    onSave(typed);
  };
  return (
    <Dialog title={rule === null ? 'Add a rule' : `Change ${rule.name}`} onClose={onClose}>
      <Form submit="Keep" onSubmit={save} onCancel={onClose}>
        <Field label="Name" name="name" value={name} onChange={setName} />
        <SelectorField
          label="From"
          name="from"
          {...from}
          onChange={(chosen, typed) => setFrom({ chosen, typed })}
          selectors={selectors}
        />
        <SelectorField
          label="To"
          name="to"
          {...to}
          onChange={(chosen, typed) => setTo({ chosen, typed })}
          selectors={selectors}
        />
        <p class="hint">
          <code>peer:NAME</code>, <code>tag:NAME</code>, <code>route:CIDR</code>, <code>cidr:CIDR</code> for a part of a
          route, or <code>any</code>.
        </p>
        <Choice label="Protocol" name="protocol" value={protocol} options={protocols} onChange={setProtocol} />
        {hasPorts(protocol) && (
          <Field
            label="Ports"
            name="ports"
            value={ports}
            onChange={setPorts}
            placeholder="22 8000-8080"
            hint="Of the destination, separated by blanks. Empty for all."
          />
        )}
      </Form>
    </Dialog>
  );
}

interface Chosen {
  readonly chosen: readonly string[];
  readonly typed: string;
}
