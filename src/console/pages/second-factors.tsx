import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type {
  AddedFactor,
  FactorChallenge,
  FactorKind,
  RecoveryCodes,
  SecondFactor,
  SecondFactors,
} from '../../contract/second-factor.ts';
import { announce } from '../announcer.ts';
import { ApiError, call } from '../client.ts';
import { Copy, QrCode } from '../parts/copy.tsx';
import { Download } from '../parts/download.tsx';
import { Confirm } from '../parts/forms/dialog.tsx';
import { Choice, Field, Form, useIsShown } from '../parts/forms/form.tsx';
import { Loading, Problem } from '../parts/request-state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { findPasskeyProblem, makePasskey } from '../passkeys.ts';

const path = 'api/auth/factors';
const kinds: Readonly<Record<FactorKind, string>> = { totp: 'Authenticator app', passkey: 'Passkey' };

interface SectionProps {
  readonly onAdded: () => Promise<void>;
}

/** The second factors of the user. */
export function SecondFactorSection({ onAdded }: SectionProps): JSX.Element | null {
  const [read, setRead] = useState<SecondFactors | Error | null>(null);
  const [codes, setCodes] = useState<readonly string[] | null>(null);
  const [removed, setRemoved] = useState<SecondFactor | null>(null);
  const [replaces, setReplaces] = useState(false);
  const isShown = useIsShown();
  const refresh = async () => {
    const next = await call<SecondFactors>('GET', path).catch((error: Error) => error);
    if (isShown()) setRead(next);
  };
  useEffect(() => void refresh(), []);
  // A replica of an earlier version has none.
  if (read instanceof ApiError && read.status === 404) return null;
  const added = async ({ factor, recovery_codes, sessions_ended }: AddedFactor) => {
    if (recovery_codes) setCodes(recovery_codes);
    announce(`${factor.name} is added.${sessions_ended > 0 ? ' Your other sessions ended.' : ''}`);
    await Promise.all([refresh(), onAdded()]);
  };
  const remove = async ({ id, name }: SecondFactor) => {
    await call('DELETE', `${path}/${id}`);
    setRemoved(null);
    announce(`${name} is removed.`);
    await refresh();
  };
  const replace = async () => {
    const { recovery_codes } = await call<RecoveryCodes>('POST', `${path}/recovery-codes`);
    setCodes(recovery_codes);
    setReplaces(false);
    await refresh();
  };
  return (
    <>
      <h2>Second factors</h2>
      <p>The login needs one of them after the password. With a second factor, programs use a personal token.</p>
      {read === null && <Loading />}
      {read instanceof Error && <Problem text={read.message} />}
      {read !== null && !(read instanceof Error) && (
        <>
          {read.factors.length > 0 && (
            <>
              <Factors factors={read.factors} onRemove={setRemoved} />
              <p>
                Recovery codes left: {read.recovery_codes_left}.{' '}
                <button type="button" onClick={() => setReplaces(true)}>
                  Make new recovery codes
                </button>
              </p>
            </>
          )}
          {codes !== null && <ShownCodes codes={codes} />}
          <AddFactor
            isFirst={read.factors.length === 0}
            problem={read.passkey_problem ?? findPasskeyProblem()}
            onAdded={added}
          />
        </>
      )}
      {removed !== null && (
        <Confirm
          title={`Remove ${removed.name}?`}
          action="Remove"
          onConfirm={() => remove(removed)}
          onClose={() => setRemoved(null)}
        >
          <p>Without the last second factor, the password suffices, and the recovery codes are void.</p>
        </Confirm>
      )}
      {replaces && (
        <Confirm
          title="Make new recovery codes?"
          action="Make new codes"
          onConfirm={replace}
          onClose={() => setReplaces(false)}
        >
          <p>The former recovery codes are void at once.</p>
        </Confirm>
      )}
    </>
  );
}

interface FactorsProps {
  readonly factors: readonly SecondFactor[];
  readonly onRemove: (factor: SecondFactor) => void;
}

function Factors({ factors, onRemove }: FactorsProps): JSX.Element {
  const columns: readonly Column<SecondFactor>[] = [
    { title: 'Name', cell: ({ name }) => name },
    { title: 'Kind', cell: ({ kind }) => kinds[kind] ?? kind },
    { title: 'Since', cell: ({ created_at }) => <Time at={created_at} /> },
    { title: 'Last used', cell: ({ last_used_at }) => (last_used_at === null ? 'never' : <Time at={last_used_at} />) },
    {
      title: 'Actions',
      isActions: true,
      cell: (factor) => (
        <button type="button" class="danger" onClick={() => onRemove(factor)}>
          Remove<span class="hidden"> {factor.name}</span>
        </button>
      ),
    },
  ];
  return <Table label="Second factors" columns={columns} rows={factors} keyOf={({ id }) => id} />;
}

function ShownCodes({ codes }: { readonly codes: readonly string[] }): JSX.Element {
  const text = `${codes.join('\n')}\n`;
  return (
    <>
      <Copy
        what="list"
        label="Recovery codes, which are shown only now. Each replaces a lost second factor once: keep them apart from the password."
        text={text}
      />
      <p>
        <Download name="cpn-recovery-codes.txt" text={text} />
      </p>
    </>
  );
}

interface AddFactorProps {
  readonly isFirst: boolean;
  /** Why there are no passkeys here. */
  readonly problem: string | null;
  readonly onAdded: (added: AddedFactor) => Promise<void>;
}

function AddFactor({ isFirst, problem, onAdded }: AddFactorProps): JSX.Element {
  const [kind, setKind] = useState<FactorKind>(problem === null ? 'passkey' : 'totp');
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [code, setCode] = useState('');
  const [app, setApp] = useState<FactorChallenge | null>(null);
  const add = async (challenge: string, proof: object) => {
    const added = await call<AddedFactor>('POST', path, { challenge, name: name.trim() || kinds[kind], ...proof });
    for (const clear of [setName, setPassword, setCode]) clear('');
    setApp(null);
    await onAdded(added);
  };
  const begin = async () => {
    const proof = password === '' ? {} : { password };
    const begun = await call<FactorChallenge>('POST', `${path}/challenges`, { kind, ...proof });
    if (begun.passkey === undefined) return setApp(begun);
    await add(begun.challenge, { passkey: await makePasskey(begun.passkey) });
  };
  if (app?.uri !== undefined) {
    return (
      <Form submit="Add" isSecondary onSubmit={() => add(app.challenge, { code })} onCancel={() => setApp(null)}>
        <p>Scan the code with the app, or type the secret into it. Then enter the code that the app shows.</p>
        <QrCode label="The secret of the app as a QR code" text={app.uri} />
        <Copy what="secret" label="The secret" text={app.secret ?? ''} />
        <Field
          label="Code"
          name="code"
          autocomplete="one-time-code"
          isDigits
          chars={8}
          value={code}
          onChange={setCode}
          hint="6 digits."
        />
      </Form>
    );
  }
  return (
    <Form submit="Add a second factor" isSecondary onSubmit={begin}>
      <div class="columns">
        <Choice
          label="Kind"
          name="kind"
          value={kind}
          options={[...(problem === null ? [['passkey', kinds.passkey] as const] : []), ['totp', kinds.totp]]}
          onChange={setKind}
          {...(problem !== null && { hint: `No passkeys here: ${problem}.` })}
        />
        <Field
          label="Name of the factor"
          name="name"
          value={name}
          onChange={setName}
          hint="Such as phone, or key on the desk."
        />
        {isFirst && (
          <Field
            label="Your password"
            name="password"
            type="password"
            autocomplete="current-password"
            value={password}
            onChange={setPassword}
            hint="Not needed within 5 minutes of your login."
          />
        )}
      </div>
    </Form>
  );
}
