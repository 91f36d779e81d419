import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { LoginMethods } from '../../contract/single-sign-on.ts';
import { call } from '../client.ts';
import { Field, Form } from '../parts/forms/form.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { Problem } from '../parts/request-state.tsx';
import { beginSingleSignOn, hasEnded, logIn, singleSignOnProblem } from '../session.ts';

/** For a replica of an earlier version, which has no other methods. */
const passwordOnly: LoginMethods = { password: true, single_sign_on: null };

export function LoginPage(): JSX.Element {
  const [methods, setMethods] = useState(passwordOnly);
  useEffect(() => {
    call<LoginMethods>('GET', 'api/auth/methods').then(setMethods, () => {});
  }, []);
  const { password, single_sign_on: singleSignOn } = methods;
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
      {password && <PasswordLogin isSecondary={singleSignOn !== null} />}
      {!password && (
        <p class="hint">
          Logins with a password are off. On the machine of the control plane, an owner may still use one after{' '}
          <code>cpn control-plane reset-owner</code>.
        </p>
      )}
    </main>
  );
}

function PasswordLogin({ isSecondary }: { readonly isSecondary: boolean }): JSX.Element {
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  return (
    <>
      <Form submit="Log in" isSecondary={isSecondary} onSubmit={() => logIn(email, password)}>
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
