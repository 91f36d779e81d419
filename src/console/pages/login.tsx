import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { Field, Form } from '../parts/forms/form.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { hasEnded, logIn } from '../session.ts';

export function LoginPage(): JSX.Element {
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  return (
    <main class="narrow">
      <PageTitle>Log in to cpn</PageTitle>
      {hasEnded.value && <p role="status">Your session ended.</p>}
      <Form submit="Log in" onSubmit={() => logIn(email, password)}>
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
    </main>
  );
}
