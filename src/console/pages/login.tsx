import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { LoginMethods } from '../../contract/single-sign-on.ts';
import { announce } from '../announcer.ts';
import { call } from '../client.ts';
import { Field, Form } from '../parts/forms/form.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { Problem } from '../parts/request-state.tsx';
import { findPasskeyProblem, provePasskey } from '../passkeys.ts';
import {
  beginSingleSignOn,
  hasEnded,
  logIn,
  passSecondStep,
  type SecondStep,
  singleSignOnProblem,
} from '../session.ts';

/** For a replica of an earlier version, which has no other methods. */
const passwordOnly: LoginMethods = { password: true, single_sign_on: null };

export function LoginPage(): JSX.Element {
  const [methods, setMethods] = useState(passwordOnly);
  const [step, setStep] = useState<SecondStep | null>(null);
  useEffect(() => {
    call<LoginMethods>('GET', 'api/auth/methods').then(setMethods, () => {});
  }, []);
  const { password, single_sign_on: singleSignOn } = methods;
  if (step !== null) return <SecondStepPage step={step} onRestart={() => setStep(null)} />;
  return (
    <main class="narrow">
      <PageTitle>Log in to cpn</PageTitle>
      {hasEnded.value && <p role="status">Your session ended.</p>}
      <Problem text={singleSignOnProblem.value} />
      {singleSignOn !== null && (
        <>
          <Form submit="Log in with single sign-on" onSubmit={beginSingleSignOn}>
            <p class="hint">At {new URL(singleSignOn.issuer).host}</p>
          </Form>
          {password && <h2>With a password</h2>}
        </>
      )}
      {password && <PasswordLogin isSecondary={singleSignOn !== null} onSecondStep={setStep} />}
      {!password && (
        <p class="hint">
          Logins with a password are off. On the machine of the control plane, an owner may still use one after{' '}
          <code>cpn control-plane reset-owner</code>.
        </p>
      )}
    </main>
  );
}

interface PasswordLoginProps {
  readonly isSecondary: boolean;
  readonly onSecondStep: (step: SecondStep) => void;
}

function PasswordLogin({ isSecondary, onSecondStep }: PasswordLoginProps): JSX.Element {
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const enter = async () => {
    const next = await logIn(email, password);
    if (next === null) return;
    setPassword('');
    onSecondStep(next);
  };
  return (
    <>
      <Form submit="Log in" isSecondary={isSecondary} onSubmit={enter}>
        <Field
          label="E-mail address"
          name="email"
          type="email"
          autocomplete="username"
          value={email}
          onChange={setEmail}
        />
        <Field
          label="Password"
          name="password"
          type="password"
          autocomplete="current-password"
          value={password}
          onChange={setPassword}
        />
      </Form>
      <p class="hint">
        An owner who lost the password types this on the machine of the control plane:{' '}
        <code>cpn control-plane reset-owner --email ADDRESS --password-file FILE</code>
      </p>
    </>
  );
}

interface SecondStepProps {
  readonly step: SecondStep;
  readonly onRestart: () => void;
}

type Way = 'passkey' | 'totp' | 'recovery_code';

const labels: Readonly<Record<Way, string>> = {
  passkey: 'Use a passkey',
  totp: 'Use an authenticator app',
  recovery_code: 'Use a recovery code',
};

/** The second factor, after the right password. */
function SecondStepPage({ step, onRestart }: SecondStepProps): JSX.Element {
  const { passkey, kinds, passkey_hosts: hosts } = step;
  const ways: Way[] = [
    ...(passkey !== null && findPasskeyProblem() === null ? ['passkey' as const] : []),
    ...(kinds.includes('totp') ? ['totp' as const] : []),
    'recovery_code',
  ];
  const [way, setWay] = useState(ways[0]);
  const [code, setCode] = useState('');
  const place = useRef<HTMLElement>(null);
  useEffect(() => place.current?.querySelector<HTMLElement>('input, button')?.focus(), [way]);
  const prove = async () => {
    if (way === 'passkey') return passSecondStep(step, { passkey: await provePasskey(passkey ?? {}) });
    await passSecondStep(step, way === 'totp' ? { code } : { recovery_code: code });
    if (way === 'recovery_code') announce(`Recovery codes left: ${step.recovery_codes_left - 1}.`);
  };
  const choose = (next: Way) => {
    setCode('');
    setWay(next);
  };
  return (
    <main class="narrow" ref={place}>
      <PageTitle>Second factor</PageTitle>
      {kinds.includes('passkey') && !ways.includes('passkey') && (
        <p>Your passkeys work at {hosts.join(', ')}. Open the console there, or use another second factor.</p>
      )}
      <Form key={way} submit={way === 'passkey' ? labels.passkey : 'Log in'} onSubmit={prove}>
        {way === 'totp' && (
          <Field
            label="Code"
            name="code"
            autocomplete="one-time-code"
            isDigits
            chars={8}
            value={code}
            onChange={setCode}
            hint="The 6 digits that your authenticator app shows."
          />
        )}
        {way === 'recovery_code' && (
          <Field
            label="Recovery code"
            name="recovery_code"
            value={code}
            onChange={setCode}
            hint={`Each is valid once. Codes left: ${step.recovery_codes_left}.`}
          />
        )}
      </Form>
      <p class="actions">
        {ways
          .filter((each) => each !== way)
          .map((each) => (
            <button key={each} type="button" onClick={() => choose(each)}>
              {labels[each]}
            </button>
          ))}
        <button type="button" onClick={onRestart}>
          Start again
        </button>
      </p>
      <p class="hint">Without all of them, ask an owner or admin to remove your second factors.</p>
    </main>
  );
}
