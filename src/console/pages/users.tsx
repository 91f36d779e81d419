import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { NetworkLimit, Role } from '../../contract/auth.ts';
import type { ChangedUser, SessionsEnded, User, UserRemoval } from '../../contract/user.ts';
import { announce } from '../announcer.ts';
import { call } from '../client.ts';
import { Confirm, Dialog } from '../parts/forms/dialog.tsx';
import { Check, Choice, Field, Form } from '../parts/forms/form.tsx';
import { NetworkChoice, useLimitText } from '../parts/forms/network-choice.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { List } from '../parts/request-state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { usePolled } from '../polled.ts';
import { isOwner, profile } from '../session.ts';

const roles: readonly (readonly [Role, string])[] = [
  ['viewer', 'viewer: reads networks and peers'],
  ['member', 'member: changes networks, peers and keys'],
  ['admin', 'admin: also manages users, and reads the audit'],
  ['owner', 'owner: also makes and changes owners'],
];

type OpenedDialog =
  | { readonly dialog: 'create' }
  | { readonly dialog: 'role' | 'sessions' | 'factors' | 'remove'; readonly user: User }
  | null;

export function UsersPage(): JSX.Element {
  const users = usePolled<User>('api/users');
  const describeLimit = useLimitText();
  const [opened, setOpened] = useState<OpenedDialog>(null);
  // The dialog may belong to a later click by now.
  const close = () => setOpened((present) => (present === opened ? null : present));
  const done = async (text: string) => {
    await users.refresh();
    announce(text);
    close();
  };
  const columns: readonly Column<User>[] = [
    { title: 'E-mail address', cell: ({ email }) => email },
    { title: 'Role', cell: ({ role }) => role },
    // A replica of an earlier version sends none.
    { title: 'Second factor', cell: ({ has_second_factor: has }) => (has === undefined ? '–' : has ? 'yes' : 'no') },
    { title: 'Networks', cell: ({ networks }) => describeLimit(networks) },
    { title: 'Since', cell: ({ created_at }) => <Time at={created_at} /> },
    {
      title: 'Actions',
      isActions: true,
      cell: (user) => (
        <>
          {isOwner() && (
            <button type="button" onClick={() => setOpened({ dialog: 'role', user })}>
              Change the role<span class="hidden"> of {user.email}</span>
            </button>
          )}
          {user.id !== profile.value?.id && (user.role !== 'owner' || isOwner()) && (
            <button type="button" onClick={() => setOpened({ dialog: 'sessions', user })}>
              End sessions<span class="hidden"> of {user.email}</span>
            </button>
          )}
          {user.has_second_factor && user.id !== profile.value?.id && (user.role !== 'owner' || isOwner()) && (
            <button type="button" onClick={() => setOpened({ dialog: 'factors', user })}>
              Remove second factors<span class="hidden"> of {user.email}</span>
            </button>
          )}
          {user.id !== profile.value?.id && (
            <button type="button" class="danger" onClick={() => setOpened({ dialog: 'remove', user })}>
              Remove<span class="hidden"> {user.email}</span>
            </button>
          )}
        </>
      ),
    },
  ];
  return (
    <>
      <div class="heading">
        <PageTitle>Users</PageTitle>
        <button type="button" class="primary" onClick={() => setOpened({ dialog: 'create' })}>
          Create a user
        </button>
      </div>
      <List from={users} empty={<p>There is no user.</p>}>
        {(items) => <Table label="Users" columns={columns} rows={items} keyOf={({ id }) => id} />}
      </List>
      {opened?.dialog === 'create' && <CreateUser close={close} done={done} />}
      {opened?.dialog === 'role' && <ChangeRole user={opened.user} close={close} done={done} />}
      {opened?.dialog === 'sessions' && <EndSessions user={opened.user} close={close} done={done} />}
      {opened?.dialog === 'factors' && <RemoveFactors user={opened.user} close={close} done={done} />}
      {opened?.dialog === 'remove' && <RemoveUser user={opened.user} close={close} done={done} />}
    </>
  );
}

interface UserDialogProps {
  readonly close: () => void;
  readonly done: (text: string) => Promise<void>;
}

function CreateUser({ close, done }: UserDialogProps): JSX.Element {
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const [role, setRole] = useState<Role>('viewer');
  const [limit, setLimit] = useState<NetworkLimit>(null);
  const [own, setOwn] = useState('');
  const create = async () => {
    await call('POST', 'api/users', { email, password, role, networks: limitFor(role, limit), ...proofOf(own) });
    await done(`${email} is created.`);
  };
  return (
    <Dialog title="Create a user" onClose={close}>
      <Form submit="Create" onSubmit={create} onCancel={close}>
        <Field label="E-mail address" name="email" type="email" value={email} onChange={setEmail} />
        <Field
          label="Password"
          name="password"
          type="password"
          autocomplete="new-password"
          value={password}
          onChange={setPassword}
          hint="At least 12 characters. The user can change it under Account."
        />
        <Choice label="Role" name="role" value={role} options={roles} onChange={setRole} />
        {role !== 'owner' && <NetworkChoice value={limit} onChange={setLimit} />}
        <OwnPassword value={own} onChange={setOwn} />
      </Form>
    </Dialog>
  );
}

/** The password of the session's user, next to the password of another user. */
function OwnPassword(props: { readonly value: string; readonly onChange: (value: string) => void }): JSX.Element {
  return (
    <Field
      label="Your own password"
      name="current_password"
      type="password"
      autocomplete="current-password"
      hint="Not needed within 5 minutes of your login, nor for a lower role or fewer networks."
      {...props}
    />
  );
}

/** An owner has all networks. */
const limitFor = (role: Role, limit: NetworkLimit) => (role === 'owner' ? null : limit);

const proofOf = (own: string) => (own === '' ? {} : { current_password: own });

const keepsKeysLabel = 'Keep the enrolment keys that this user made';

function describeRevoked(keys: UserRemoval['keys_revoked'] = []): string {
  return keys.length === 0 ? '' : ` Revoked enrolment keys: ${keys.map(({ name }) => name).join(', ')}.`;
}

function EndSessions({ user, close, done }: UserDialogProps & { readonly user: User }): JSX.Element {
  const end = async () => {
    const { sessions_ended } = await call<SessionsEnded>('DELETE', `api/users/${user.id}/sessions`);
    await done(`Sessions of ${user.email} ended: ${sessions_ended}.`);
  };
  return (
    <Confirm title={`End all sessions of ${user.email}?`} action="End" onClose={close} onConfirm={end}>
      <p>This user has to log in again. Personal tokens stay valid.</p>
    </Confirm>
  );
}

function RemoveFactors({ user, close, done }: UserDialogProps & { readonly user: User }): JSX.Element {
  const remove = async () => {
    await call('DELETE', `api/users/${user.id}/factors`);
    await done(`The second factors of ${user.email} are removed.`);
  };
  return (
    <Confirm title={`Remove the second factors of ${user.email}?`} action="Remove" onClose={close} onConfirm={remove}>
      <p>
        For a user that lost them. The password then suffices, so make sure first that the request is from this user.
      </p>
    </Confirm>
  );
}

function RemoveUser({ user, close, done }: UserDialogProps & { readonly user: User }): JSX.Element {
  const [keepsKeys, setKeepsKeys] = useState(false);
  const remove = async () => {
    const path = `api/users/${user.id}${keepsKeys ? '?keep_keys=true' : ''}`;
    // A replica of an earlier version returns null.
    const removed = await call<UserRemoval | null>('DELETE', path);
    await done(`${user.email} is removed.${describeRevoked(removed?.keys_revoked)}`);
  };
  return (
    <Confirm title={`Remove ${user.email}?`} action="Remove" onClose={close} onConfirm={remove}>
      <p>Sessions and personal tokens of this user end at once, and usable enrolment keys of the user are revoked.</p>
      <Check label={keepsKeysLabel} isChecked={keepsKeys} onChange={setKeepsKeys} />
    </Confirm>
  );
}

function ChangeRole({ user, close, done }: UserDialogProps & { readonly user: User }): JSX.Element {
  const [role, setRole] = useState<Role>(user.role);
  const before = user.networks ?? null;
  const [limit, setLimit] = useState<NetworkLimit>(before);
  const losesNetworks = limit !== null && (before === null || before.some((id) => !limit.includes(id)));
  const [keepsKeys, setKeepsKeys] = useState(false);
  const [own, setOwn] = useState('');
  const change = async () => {
    const networks = limitFor(role, limit);
    const fields = { role, networks, ...proofOf(own), ...(keepsKeys && { keep_keys: true }) };
    const { keys_revoked } = await call<ChangedUser>('PATCH', `api/users/${user.id}`, fields);
    const limited = networks === null ? '' : ', limited to networks';
    await done(`${user.email} is ${role} now${limited}.${describeRevoked(keys_revoked)}`);
  };
  return (
    <Dialog title={`Change the role of ${user.email}`} onClose={close}>
      <Form submit="Save" onSubmit={change} onCancel={close}>
        <Choice label="Role" name="role" value={role} options={roles} onChange={setRole} />
        {role !== 'owner' && <NetworkChoice value={limit} onChange={setLimit} />}
        {(role === 'viewer' || losesNetworks) && (
          <Check label={keepsKeysLabel} isChecked={keepsKeys} onChange={setKeepsKeys} />
        )}
        <OwnPassword value={own} onChange={setOwn} />
      </Form>
    </Dialog>
  );
}
