import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { DecideDeviceCode, DeviceDecision, DeviceRequest } from '../../contract/device-code.ts';
import { call } from '../client.ts';
import { findReturn } from '../logic/page/route.ts';
import { BusyButton } from '../parts/forms/busy-button.tsx';
import { Field, Form } from '../parts/forms/form.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { Loading, Problem } from '../parts/request-state.tsx';
import { Time } from '../parts/time.tsx';
import { useReading } from '../read.ts';
import { go, query } from '../router.ts';
import { profile } from '../session.ts';

/** The approval of a login that `cpn login` started on a device. */
export function DevicePage({ code }: { readonly code: string | null }): JSX.Element {
  return (
    <>
      <PageTitle>Log in on a device</PageTitle>
      {code === null ? <CodeForm /> : <Request code={code} />}
    </>
  );
}

function CodeForm(): JSX.Element {
  const [code, setCode] = useState('');
  const open = async () => {
    const typed = code.replace(/[\s-]/g, '').toUpperCase();
    go({ page: 'device', code: `${typed.slice(0, 4)}-${typed.slice(4)}` });
  };
  return (
    <Form submit="Continue" onSubmit={open}>
      <Field
        label="Code"
        name="code"
        value={code}
        onChange={setCode}
        chars={12}
        placeholder="BCDF-GHJK"
        hint="cpn login shows it on your terminal."
      />
    </Form>
  );
}

function Request({ code }: { readonly code: string }): JSX.Element {
  const { data, isRead, problem } = useReading<DeviceRequest>(
    `api/auth/device-codes/${encodeURIComponent(code)}`,
    null,
  );
  const [decided, setDecided] = useState<'approved' | 'refused' | null>(null);
  if (decided !== null) {
    const text = decided === 'approved' ? 'The login is approved.' : 'The login is refused.';
    return <p role="status">{text} You can close this window.</p>;
  }
  if (!isRead) return <Loading />;
  if (problem !== null) return <Problem text={problem} />;
  if (data === null) {
    return (
      <>
        <Problem text={`The code ${code} is unknown, used or expired.`} />
        <p>Compare it with your terminal, or run cpn login again.</p>
        <CodeForm />
      </>
    );
  }
  return <Decision asked={data} onDecided={setDecided} />;
}

interface DecisionProps {
  readonly asked: DeviceRequest;
  readonly onDecided: (decided: 'approved' | 'refused') => void;
}

function Decision({ asked, onDecided }: DecisionProps): JSX.Element {
  const { user_code, device_name, address, same_address, created_at, redirects } = asked;
  const [password, setPassword] = useState('');
  const [problem, setProblem] = useState<string | null>(null);
  const state = query.value.state ?? '';
  const isIncomplete = redirects && findReturn({ redirect_port: 1, code: null }, state) === null;
  const decide = async (decision: DecideDeviceCode) => {
    const path = `api/auth/device-codes/${encodeURIComponent(user_code)}/approval`;
    const made = await call<DeviceDecision>('POST', path, decision);
    onDecided(decision.approve ? 'approved' : 'refused');
    const target = findReturn(made, state);
    if (target !== null) location.replace(target);
  };
  return (
    <>
      <p>
        <strong>Approve only if you started this yourself on that device,</strong> and its terminal shows this code. A
        person who sent you this link or code could act as you.
      </p>
      <dl class="facts">
        <dt>Code</dt>
        <dd>
          <strong>{user_code}</strong>
        </dd>
        <dt>Device</dt>
        <dd>{device_name || 'no name'}</dd>
        <dt>Address</dt>
        <dd>
          <code>{address}</code>{' '}
          {same_address ? '(the same as that of this browser)' : '(not the address of this browser)'}
        </dd>
        <dt>Requested</dt>
        <dd>
          <Time at={created_at} />
        </dd>
        <dt>It logs in as</dt>
        <dd>
          {profile.value?.email}, {profile.value?.role} of {profile.value?.organization.name}
        </dd>
      </dl>
      {isIncomplete ? (
        <Problem text="Open the whole address that cpn login shows, on the machine where you started it." />
      ) : (
        <Form submit="Approve" onSubmit={() => decide({ approve: true, ...(password !== '' && { password }) })}>
          <Field
            label="Your password"
            name="password"
            type="password"
            autocomplete="current-password"
            value={password}
            onChange={setPassword}
            hint="Not needed within 5 minutes of your login."
          />
        </Form>
      )}
      <Problem text={problem} />
      <BusyButton
        class="danger"
        onClick={() => decide({ approve: false }).catch((error: Error) => setProblem(error.message))}
      >
        Refuse
      </BusyButton>
    </>
  );
}
