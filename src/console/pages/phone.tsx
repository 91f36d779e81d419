import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Network } from '../../contract/network.ts';
import type { Peer } from '../../contract/peer.ts';
import { findProfileConnectors } from '../../core/export/device-profile.ts';
import { ApiError } from '../client.ts';
import { enrollPhone, keepPhone, keptPhone, OutcomeUnknown, type Phone, repeat } from '../enroll-phone.ts';
import { healthSource, useLive } from '../live.ts';
import { linkTo } from '../logic/page/route.ts';
import { type Dialled, findDialled } from '../logic/peers/connectors.ts';
import { draftPhoneConfig, fitsCode } from '../logic/peers/phone-config.ts';
import { Copy, QrCode } from '../parts/copy.tsx';
import { Download } from '../parts/download.tsx';
import { Choice, Field, Form } from '../parts/forms/form.tsx';
import { Problem } from '../parts/request-state.tsx';
import { route } from '../router.ts';
import { profile } from '../session.ts';

/** Adds a phone or another device without cpn, and shows its file, which exists only here. */
export function AddPhone({ network, children }: { readonly network: Network; readonly children: JSX.Element }) {
  const connectors = useConnectors(network);
  const [name, setName] = useState('');
  const [days, setDays] = useState('');
  const [chosen, setChosen] = useState<string | null>(null);
  const [attempt, setAttempt] = useState<OutcomeUnknown['attempt'] | null>(null);
  const dialled = findDialled(
    chosen,
    connectors.map(({ peer }) => peer),
  );
  const via = typeof dialled === 'object' ? String(dialled.id) : dialled;
  const isDialled = network.peers.some(({ endpoint }) => endpoint !== null);
  const options = [
    ...connectors.map(({ peer, isOffline }, at): [string, string] => [
      String(peer.id),
      `through ${peer.name}${at === 0 ? ' (recommended)' : ''}${isOffline ? ', which is offline' : ''}`,
    ]),
    ['all', 'directly to every peer that has an endpoint'] as [string, string],
    ...(dialled === 'gone' ? [['gone', 'choose again: the connector is gone'] as [string, string]] : []),
  ];
  const enroll = async () => {
    if (dialled === 'gone' && attempt === null) throw new Error('The connector that you chose is gone. Choose again.');
    const connector = typeof dialled === 'object' ? dialled : null;
    const expiresInHours = days.trim() === '' ? null : Math.round(Number(days) * 24);
    try {
      const request = { network, name, expiresInHours, connector };
      await keepPhone(() => (attempt ? repeat(attempt) : enrollPhone(request)));
      setAttempt(null);
    } catch (error) {
      if (error instanceof OutcomeUnknown) setAttempt(error.attempt);
      else if (error instanceof ApiError) setAttempt(null);
      throw error;
    }
  };
  // The console shows it above the page.
  if (keptPhone.value !== null) return null;
  if (!isDialled) {
    return (
      <>
        {children}
        <p class="problem">
          No peer has an endpoint, so a phone reaches none. Give a connector an endpoint in{' '}
          <a href={linkTo({ page: 'peers', network: network.id })}>Peers</a>.
        </p>
      </>
    );
  }
  return (
    <Form submit={attempt ? 'Try again' : 'Enrol the phone'} onSubmit={enroll}>
      {children}
      <Field label="Name" name="name" value={name} onChange={setName} hint="What the phone is called." />
      <Choice
        label="How does it reach the network?"
        name="profile"
        value={via}
        options={options}
        onChange={setChosen}
        hint={describeChoice(network, dialled, connectors.length)}
      />
      <Field
        label="Days until the peer expires"
        name="peer_expires_in_hours"
        type="number"
        value={days}
        onChange={setDays}
        hint="Empty for never."
      />
    </Form>
  );
}

/** The connectors that a phone can dial. Offline connectors come last. */
function useConnectors(network: Network): { readonly peer: Peer; readonly isOffline: boolean }[] {
  const { data } = useLive(healthSource(network.id));
  const offline = new Set(data?.peers.filter(({ state }) => state === 'offline').map(({ id }) => id));
  const all = findProfileConnectors(network).map((peer) => ({ peer, isOffline: offline.has(peer.id) }));
  return [...all.filter(({ isOffline }) => !isOffline), ...all.filter(({ isOffline }) => isOffline)];
}

function describeChoice(network: Network, dialled: Dialled, count: number): string {
  if (dialled === 'gone') return 'Another admin removed the connector, or phones cannot dial it any more.';
  if (dialled !== 'all')
    return `One peer in the file, which stays valid while peers come and go. If ${dialled.name} fails, the phone is cut off.`;
  const why = count === 0 ? 'No connector has an endpoint and relays. ' : '';
  return `${why}Peers that join later are not in the file.${describeSize(network)}`;
}

function describeSize(network: Network): string {
  try {
    const draft = draftPhoneConfig(network, null);
    return fitsCode(draft) ? '' : ` It has ${draft.length} bytes, too many for a QR code: you get a file.`;
  } catch (error) {
    return ` ${error instanceof Error ? error.message : String(error)}.`;
  }
}

/** The last enrolled phone, until the user closes it: its key exists only here. */
export function KeptPhone(): JSX.Element | null {
  const phone = keptPhone.value;
  if (phone === null) return null;
  const close = () => {
    keptPhone.value = null;
  };
  return (
    <section class="kept" aria-label="The phone">
      <PhoneResult phone={phone} />
      <button type="button" onClick={close}>
        {profile.value && route.value.page === 'add-host' ? 'Add another host' : 'Close, and discard the key'}
      </button>
    </section>
  );
}

function PhoneResult({ phone }: { readonly phone: Phone }): JSX.Element {
  const { name, address, file, config, problem, connector } = phone;
  const isCode = problem === null && fitsCode(config);
  return (
    <>
      <h2>
        {name} is a peer with {address}
      </h2>
      <Problem text={problem === null ? null : `${problem}. The file has the private key, and no peer.`} />
      <p>
        {isCode
          ? 'Scan the code with the WireGuard app: Add a tunnel, then Scan from QR code.'
          : 'Import the file with the WireGuard app: Add a tunnel, then Import from file.'}{' '}
        The page made the private key; it was never sent. It stays here until you close it.{' '}
        {connector === null && 'The phone does not receive later changes of the network.'}
      </p>
      {isCode && <QrCode label={`The tunnel of ${name} as a QR code`} text={config} />}
      <p>
        <Download name={file} text={config} />
      </p>
      <Copy what="file" label="The same as a wg-quick file" text={config} />
    </>
  );
}
