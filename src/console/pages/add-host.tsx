import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { NewEnrollmentKey } from '../../contract/enrollment-key.ts';
import type { Network } from '../../contract/network.ts';
import type { PeerType } from '../../contract/peer.ts';
import { ApiError, call } from '../client.ts';
import { linkTo } from '../logic/page/route.ts';
import {
  isEndpoint,
  isLoopback,
  type JoinCommand,
  type JoinFields,
  makeJoinCommands,
  readServiceAddress,
} from '../logic/peers/join-commands.ts';
import { splitWords } from '../logic/text/format.ts';
import { Copy } from '../parts/copy.tsx';
import { Choice, Field, Form } from '../parts/forms/form.tsx';
import { NetworkFrame } from '../parts/network-frame.tsx';
import { Problem } from '../parts/request-state.tsx';
import { Time } from '../parts/time.tsx';
import { useHasRules } from '../rules.ts';
import { canAdminister } from '../session.ts';
import { AddPhone } from './phone.tsx';

export function AddHostPage({ id }: { readonly id: number }): JSX.Element {
  return (
    <NetworkFrame id={id} title="add a host">
      {(network) => <AddHost network={network} />}
    </NetworkFrame>
  );
}

type EnrolledKind = PeerType | 'phone';

const kinds = [
  ['origin', 'a server'],
  ['connector', 'a connector, which routes to a LAN'],
  ['admin_device', 'a laptop'],
  ['phone', 'a phone, by QR code'],
] as const;

/** A created key, and the peers of the network at that time. */
interface MadeKey {
  readonly key: NewEnrollmentKey;
  readonly type: PeerType;
  readonly before: ReadonlySet<number>;
}

function AddHost({ network }: { readonly network: Network }): JSX.Element {
  const [kind, setKind] = useState<EnrolledKind>('origin');
  const [name, setName] = useState('');
  const [address, setAddress] = useState(ownUrl);
  const [endpoint, setEndpoint] = useState('');
  const [uses, setUses] = useState('1');
  const [hours, setHours] = useState('24');
  const [days, setDays] = useState('');
  const [tags, setTags] = useState('');
  const hasTags = useHasRules(network.id) && canAdminister();
  const [made, setMade] = useState<MadeKey | null>(null);
  const api = readServiceAddress(address);
  const dialled = kind === 'origin' || kind === 'connector' ? endpoint.trim() : '';
  const problems = {
    ...(api === null && { api: ['must be a URL such as https://cp.example.net'] }),
    ...(dialled !== '' && !isEndpoint(dialled) && { endpoint: ['must be HOST:PORT, such as 203.0.113.22:51820'] }),
  };
  const place = api === null || 'endpoint' in problems ? null : { api, ...(dialled !== '' && { endpoint: dialled }) };
  const changeKind = (changed: EnrolledKind) => {
    setKind(changed);
    setMade(null);
  };
  const choice = <Choice label="What joins?" name="kind" value={kind} options={kinds} onChange={changeKind} />;
  if (kind === 'phone') return <AddPhone network={network}>{choice}</AddPhone>;
  /** A change of these fields requires another key. */
  const changeKey = (set: (value: string) => void) => (value: string) => {
    set(value);
    setMade(null);
  };
  const create = async () => {
    setMade(null);
    if (place === null) throw new ApiError(422, 'The form has an error.', problems);
    const expiry = days.trim() === '' ? null : Math.round(Number(days) * 24);
    const before = new Set(network.peers.map(({ id }) => id));
    const key = await call<NewEnrollmentKey>('POST', `api/networks/${network.id}/enrollment-keys`, {
      name,
      max_uses: Number(uses),
      expires_in_hours: Number(hours),
      peer_types: [kind],
      ...(expiry !== null && { peer_expires_in_hours: expiry }),
      ...(hasTags && tags.trim() !== '' && { tags: splitWords(tags) }),
    });
    setMade({ key, type: kind, before });
  };
  return (
    <>
      <Form submit="Make a key" onSubmit={create}>
        {choice}
        <Field
          label="Name"
          name="name"
          value={name}
          onChange={changeKey(setName)}
          hint="What the key is called. A host is named after itself."
        />
        <Field
          label="Address of the control plane"
          name="api"
          chars={36}
          value={address}
          onChange={setAddress}
          hint={`As the host reaches it.${api !== null && isLoopback(api) ? ` ${loopbackHint}` : ''}`}
        />
        {(kind === 'origin' || kind === 'connector') && (
          <Field
            label="Endpoint"
            name="endpoint"
            chars={32}
            value={endpoint}
            onChange={setEndpoint}
            hint={`HOST:PORT at which others dial the host. ${kind === 'connector' ? 'Without it, hosts behind NAT cannot reach the connector.' : 'Empty where they cannot reach it.'}`}
          />
        )}
        {hasTags && (
          <Field
            label="Tags"
            name="tags"
            chars={32}
            value={tags}
            onChange={changeKey(setTags)}
            hint="Rules select the host by them. Lower case letters, digits and hyphens, separated by blanks."
          />
        )}
        <div class="columns">
          <Field
            label="Hosts"
            name="max_uses"
            type="number"
            value={uses}
            onChange={changeKey(setUses)}
            hint="1 to 10."
          />
          <Field
            label="Hours until the key expires"
            name="expires_in_hours"
            type="number"
            value={hours}
            onChange={changeKey(setHours)}
            hint="1 to 168."
          />
          <Field
            label="Days until the peer expires"
            name="peer_expires_in_hours"
            type="number"
            value={days}
            onChange={changeKey(setDays)}
            hint="Empty for never."
          />
        </div>
      </Form>
      {made !== null && <JoinCommands network={network} made={made} place={place} />}
    </>
  );
}

const ownUrl = () => new URL('.', location.href).href.replace(/\/$/, '');

const loopbackHint = 'Other hosts do not reach this address; type the one that they use.';

interface JoinCommandsProps {
  readonly network: Network;
  readonly made: MadeKey;
  /** Null while the input is not a valid address or endpoint. */
  readonly place: Pick<JoinFields, 'api' | 'endpoint'> | null;
}

function JoinCommands({ network, made, place }: JoinCommandsProps): JSX.Element {
  const { key, type, before } = made;
  const commands = place === null ? [] : makeJoinCommands({ ...place, token: key.enrollment_token, type });
  const [shown, setShown] = useState<JoinCommand['id']>('debian');
  const joined = network.peers.filter(({ id }) => !before.has(id));
  return (
    <section aria-label="The command">
      <h2>Paste this on the host</h2>
      <p>
        The page shows the key only now. It expires <Time at={key.expires_at} />.
      </p>
      <Problem
        text={place === null ? 'Correct the address of the control plane or the endpoint to see the command.' : null}
      />
      <fieldset class="tabs">
        <legend class="hidden">Kind of host</legend>
        {commands.map(({ id, title }) => (
          <button key={id} type="button" aria-pressed={id === shown} onClick={() => setShown(id)}>
            {title}
          </button>
        ))}
      </fieldset>
      {commands
        .filter(({ id }) => id === shown)
        .map(({ hint, text, promptsForKey }) => (
          <div key={text}>
            <Copy label={hint} text={text} />
            {promptsForKey && (
              <Copy
                what="token"
                label="Then paste the key at the prompt, and press Enter. The terminal does not show it, and no history keeps it."
                text={key.enrollment_token}
              />
            )}
          </div>
        ))}
      <div aria-live="polite">
        {joined.length === 0 ? (
          <p class="waiting">Waiting for the host. It appears here when it joins.</p>
        ) : (
          joined.map(({ id, name, address }) => (
            <p key={id} class="done">
              <span aria-hidden="true">✓ </span>
              {name} joined with {address}. See <a href={linkTo({ page: 'peers', network: network.id })}>the peers</a>.
            </p>
          ))
        )}
      </div>
    </section>
  );
}
