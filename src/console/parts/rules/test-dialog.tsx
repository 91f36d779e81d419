import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { RuleTest } from '../../../contract/rules.ts';
import { ApiError } from '../../client.ts';
import { hasPorts, readTest } from '../../logic/rules/draft.ts';
import { Dialog } from '../forms/dialog.tsx';
import { Choice, Field, Form } from '../forms/form.tsx';
import { SelectorInput } from './selector-field.tsx';

interface TestDialogProps {
  /** Null for a new test. */
  readonly test: RuleTest | null;
  readonly selectors: readonly string[];
  readonly onSave: (test: RuleTest) => void;
  readonly onClose: () => void;
}

/** Changes a test of the draft. Nothing is sent. */
export function TestDialog({ test, selectors, onSave, onClose }: TestDialogProps): JSX.Element {
  const [from, setFrom] = useState(test?.from ?? '');
  const [to, setTo] = useState(test?.to ?? '');
  const [protocol, setProtocol] = useState<RuleTest['protocol']>(test?.protocol ?? 'tcp');
  const [port, setPort] = useState(test?.port === undefined ? '' : String(test.port));
  const [expect, setExpect] = useState<RuleTest['expect']>(test?.expect ?? 'allow');
  const save = async () => {
    const read = readTest({ from, to, protocol, expect }, port);
    if ('problems' in read) throw new ApiError(422, 'The test is not complete.', read.problems);
    onSave(read.test);
  };
  return (
    <Dialog title={test === null ? 'Add a test' : 'Change the test'} onClose={onClose}>
      <Form submit="Keep" onSubmit={save} onCancel={onClose}>
        <SelectorInput label="From" name="from" value={from} onChange={setFrom} selectors={selectors} />
        <SelectorInput label="To" name="to" value={to} onChange={setTo} selectors={selectors} />
        <div class="columns">
          <Choice
            label="Protocol"
            name="protocol"
            value={protocol}
            options={[
              ['tcp', 'TCP'],
              ['udp', 'UDP'],
              ['icmp', 'ICMP'],
            ]}
            onChange={setProtocol}
          />
          {hasPorts(protocol) && (
            <Field label="Port" name="port" type="number" value={port} onChange={setPort} hint="Empty for all." />
          )}
          <Choice
            label="Must be"
            name="expect"
            value={expect}
            options={[
              ['allow', 'allowed'],
              ['deny', 'denied'],
            ]}
            onChange={setExpect}
          />
        </div>
      </Form>
    </Dialog>
  );
}
