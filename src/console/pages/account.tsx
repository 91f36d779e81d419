import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { NetworkLimit, OpenSession } from '../../contract/auth.ts';
import type { NewPersonalToken, PersonalToken } from '../../contract/personal-token.ts';
import type { PasswordChange } from '../../contract/user.ts';
import { announce } from '../announcer.ts';
import { call } from '../client.ts';
import { Copy } from '../parts/copy.tsx';
import { BusyButton } from '../parts/forms/busy-button.tsx';
import { Confirm } from '../parts/forms/dialog.tsx';
import { Check, Field, Form } from '../parts/forms/form.tsx';
import { NetworkChoice, useLimitText } from '../parts/forms/network-choice.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { List } from '../parts/request-state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { type Polled, usePolled } from '../polled.ts';
import { changePassword, isLimited, profile } from '../session.ts';
import { OwnDevices } from './own-devices.tsx';
import { SecondFactorSection } from './second-factors.tsx';

export function AccountPage(): JSX.Element {
  const user = profile.value;
  const sessions = usePolled<OpenSession>('api/auth/sessions');
  const tokens = usePolled<PersonalToken>('api/auth/tokens');
  const describeLimit = useLimitText();
  const refresh = async () => {
    await Promise.all([sessions.refresh(), tokens.refresh()]);
  };
  return (
    <>
      <PageTitle>Account</PageTitle>
      <p>
        {user?.email}, {user?.role} of {user?.organization.name}
      </p>
      {isLimited() && <p>You are limited to networks: {describeLimit(user?.networks)}.</p>}
      <OwnDevices />
      <Sessions sessions={sessions} />
      <Tokens tokens={tokens} describeLimit={describeLimit} />
      <SecondFactorSection onAdded={sessions.refresh} />
      <Password onChanged={refresh} />
    </>
  );
}

function Sessions({ sessions }: { readonly sessions: Polled<OpenSession> }): JSX.Element {
  const end = async ({ id, device_name }: OpenSession) => {
    await call('DELETE', `api/auth/sessions/${id}`);
    await sessions.refresh();
    announce(`The session ${device_name} is ended.`);
  };
  const columns: readonly Column<OpenSession>[] = [
    {
      title: 'Device',
      cell: ({ device_name, is_current }) => `${device_name || '–'}${is_current ? ' (this one)' : ''}`,
    },
    { title: 'From', cell: ({ address }) => <code>{address ?? '–'}</code> },
    { title: 'Since', cell: ({ created_at }) => <Time at={created_at} /> },
    // A replica of an earlier version sends none.
    { title: 'Last used', cell: ({ last_used_at }) => (last_used_at ? <Time at={last_used_at} /> : '–') },
    { title: 'Expires', cell: ({ expires_at }) => <Time at={expires_at} /> },
    {
      title: 'Actions',
      isActions: true,
      cell: (session) =>
        !session.is_current && (
          <BusyButton onClick={() => end(session).catch((error: Error) => announce(error.message))}>
            End<span class="hidden"> the session {session.device_name}</span>
          </BusyButton>
        ),
    },
  ];
  return (
    <>
      <h2>Sessions</h2>
      <List from={sessions} empty={<p>There is no session.</p>}>
        {(items) => <Table label="Sessions" columns={columns} rows={items} keyOf={({ id }) => id} />}
      </List>
    </>
  );
}

interface TokensProps {
  readonly tokens: Polled<PersonalToken>;
  readonly describeLimit: (limit: NetworkLimit | undefined) => string;
}

function Tokens({ tokens, describeLimit }: TokensProps): JSX.Element {
  const [name, setName] = useState('');
  const [days, setDays] = useState('90');
  const [password, setPassword] = useState('');
  const [limit, setLimit] = useState<NetworkLimit>(null);
  const [made, setMade] = useState<NewPersonalToken | null>(null);
  const [revoked, setRevoked] = useState<PersonalToken | null>(null);
  const create = async () => {
    setMade(null);
    const expiry = days.trim() === '' ? {} : { expires_in_days: Number(days) };
    const proof = password === '' ? {} : { password };
    setMade(await call<NewPersonalToken>('POST', 'api/auth/tokens', { name, networks: limit, ...expiry, ...proof }));
    setName('');
    setLimit(null);
    setPassword('');
    await tokens.refresh();
  };
  const revoke = async (token: PersonalToken) => {
    const { id, name: shown } = token;
    await call('DELETE', `api/auth/tokens/${id}`);
    await tokens.refresh();
    announce(`The token ${shown} is revoked.`);
    setRevoked((present) => (present === token ? null : present));
  };
  const columns: readonly Column<PersonalToken>[] = [
    { title: 'Name', cell: ({ name: shown }) => shown },
    { title: 'Networks', cell: ({ networks }) => describeLimit(networks) },
    { title: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
    { title: 'Last used', cell: ({ last_used_at }) => (last_used_at === null ? 'never' : <Time at={last_used_at} />) },
    { title: 'Expires', cell: ({ expires_at }) => (expires_at === null ? 'never' : <Time at={expires_at} />) },
    {
      title: 'Actions',
      isActions: true,
      cell: (token) => (
        <button type="button" class="danger" onClick={() => setRevoked(token)}>
          Revoke<span class="hidden"> {token.name}</span>
        </button>
      ),
    },
  ];
  return (
    <>
      <h2>Personal tokens</h2>
      <p>Programs use a personal token with your role, as in CPN_API_TOKEN.</p>
      <List
        from={tokens}
        empty={
          <p>
            There is no token. Make one here, or type <code>cpn token create --name deploy</code>
          </p>
        }
      >
        {(items) => <Table label="Personal tokens" columns={columns} rows={items} keyOf={({ id }) => id} />}
      </List>
      <Form submit="Make a token" onSubmit={create}>
        <div class="columns">
          <Field label="Name of the token" name="name" value={name} onChange={setName} />
          <Field
            label="Days until it expires"
            name="expires_in_days"
            type="number"
            value={days}
            onChange={setDays}
            hint="1 to 365, or empty for never."
          />
          <Field
            label="Your password"
            name="password"
            type="password"
            autocomplete="current-password"
            value={password}
            onChange={setPassword}
            hint="Not needed within 5 minutes of your login."
          />
        </div>
        <NetworkChoice value={limit} onChange={setLimit} />
      </Form>
      {made !== null && (
        <Copy what="token" label={`The token ${made.name}, which is shown only now`} text={made.access_token} />
      )}
      {revoked !== null && (
        <Confirm
          title={`Revoke ${revoked.name}?`}
          action="Revoke"
          onConfirm={() => revoke(revoked)}
          onClose={() => setRevoked(null)}
        >
          <p>Programs that use this token are refused at once.</p>
        </Confirm>
      )}
    </>
  );
}

function Password({ onChanged }: { readonly onChanged: () => Promise<void> }): JSX.Element {
  const [current, setCurrent] = useState('');
  const [next, setNext] = useState('');
  const [keepsTokens, setKeepsTokens] = useState(false);
  const [done, setDone] = useState<PasswordChange | null>(null);
  const change = async () => {
    setDone(null);
    const changed = await changePassword({
      current_password: current,
      new_password: next,
      keep_tokens: keepsTokens,
    });
    announce('The password is changed. Your other sessions ended.');
    setDone(changed);
    setCurrent('');
    setNext('');
    await onChanged();
  };
  return (
    <>
      <h2>Password</h2>
      <p>A new password ends your other sessions and revokes your personal tokens.</p>
      <Form submit="Change the password" isSecondary onSubmit={change}>
        <Field
          label="Current password"
          name="current_password"
          type="password"
          autocomplete="current-password"
          value={current}
          onChange={setCurrent}
        />
        <Field
          label="New password"
          name="new_password"
          type="password"
          autocomplete="new-password"
          value={next}
          onChange={setNext}
          hint="At least 12 characters."
        />
        <Check label="Keep my personal tokens valid" isChecked={keepsTokens} onChange={setKeepsTokens} />
      </Form>
      {done !== null && <Outcome {...done} />}
    </>
  );
}

/** What a new password revoked, and what a holder of the former password may have created. */
function Outcome({ tokens_revoked, users_made = [], keys_made = [] }: Partial<PasswordChange>): JSX.Element {
  return (
    <div role="status">
      {tokens_revoked !== undefined && tokens_revoked.length > 0 && (
        <p>Revoked tokens: {tokens_revoked.map(({ name }) => name).join(', ')}.</p>
      )}
      {users_made.length > 0 && (
        <p>
          You created or gave a role: {users_made.map(({ email, role }) => `${email} (${role})`).join(', ')}. Remove{' '}
          <a href="#/users">users</a> that you do not recognise.
        </p>
      )}
      {keys_made.length > 0 && (
        <p>
          You created these enrolment keys, which hosts can use. Revoke those that you do not recognise:{' '}
          {keys_made.map(({ id, name, network }) => (
            <a key={id} href={`#/networks/${network.id}/keys`}>
              {name} of {network.name}{' '}
            </a>
          ))}
        </p>
      )}
    </div>
  );
}
