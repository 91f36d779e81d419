import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Network } from '../../../contract/network.ts';
import type { ChangePeer, Peer } from '../../../contract/peer.ts';
import { comparedKeyOf, fingerprintOf } from '../../../core/crypto/fingerprint.ts';
import { announce } from '../../announcer.ts';
import { ApiError, call } from '../../client.ts';
import { changeRoutes, changeTags } from '../../logic/peers/connectors.ts';
import { inDays, splitWords } from '../../logic/text/format.ts';
import { useHasRules } from '../../rules.ts';
import { canAdminister } from '../../session.ts';
import { Losses } from '../removal.tsx';
import { Time } from '../time.tsx';
import { Confirm, Dialog } from './dialog.tsx';
import { Check, Field, Form, useIsShown } from './form.tsx';

export interface OpenedPeer {
  readonly action: 'change' | 'approve' | 'suspend' | 'remove';
  readonly peer: Peer;
}

interface PeerActionsProps {
  readonly peer: Peer;
  readonly onOpen: (opened: OpenedPeer) => void;
}

export function PeerActions({ peer, onOpen }: PeerActionsProps): JSX.Element {
  const button = (action: OpenedPeer['action'], text: string) => (
    <button type="button" class={action === 'remove' ? 'danger' : ''} onClick={() => onOpen({ action, peer })}>
      {text}
      <span class="hidden"> {peer.name}</span>
    </button>
  );
  return (
    <>
      {button('change', 'Change')}
      {peer.awaiting_approval === undefined
        ? button('suspend', peer.suspended_at === undefined ? 'Suspend' : 'Resume')
        : canAdminister() && button('approve', 'Approve')}
      {button('remove', 'Remove')}
    </>
  );
}

interface PeerDialogProps extends OpenedPeer {
  readonly network: Network;
  readonly onClose: () => void;
  /** Called after the action. */
  readonly onDone: () => unknown;
}

export function PeerDialog({ network, peer, action, onClose, onDone }: PeerDialogProps): JSX.Element {
  const isShown = useIsShown();
  // The button stays busy until the page shows the change.
  const done = async () => {
    await onDone();
    if (isShown()) onClose();
  };
  const props = { network, peer, close: onClose, done };
  if (action === 'change') return <ChangePeerDialog {...props} />;
  if (action === 'approve') return <ApproveDialog {...props} />;
  return action === 'suspend' ? <SuspendDialog {...props} /> : <RemoveDialog {...props} />;
}

interface PeerActionProps {
  readonly network: Network;
  readonly peer: Peer;
  readonly close: () => void;
  readonly done: () => Promise<void>;
}

const change = (network: Network, peer: Peer, fields: ChangePeer) =>
  call<Peer>('PATCH', `api/networks/${network.id}/peers/${peer.id}`, fields);

function ChangePeerDialog({ network, peer, close, done }: PeerActionProps): JSX.Element {
  const isConnector = peer.peer_type === 'connector';
  const [name, setName] = useState(peer.name);
  const [endpoint, setEndpoint] = useState(peer.endpoint ?? '');
  const [hasAll, setAll] = useState(peer.routes === undefined);
  const [routes, setRoutes] = useState((peer.routes ?? []).join('\n'));
  const [priority, setPriority] = useState(String(peer.priority ?? 0));
  const [tags, setTags] = useState((peer.tags ?? []).join(' '));
  const hasTags = useHasRules(network.id) && canAdminister();
  const [days, setDays] = useState('');
  const [isForever, setForever] = useState(peer.expires_at === undefined);
  const save = async () => {
    const wanted = hasAll ? null : splitWords(routes);
    const expiry = inDays(days, new Date());
    const wasForever = peer.expires_at === undefined;
    if (wasForever && !isForever && expiry === null) {
      throw new ApiError(422, 'Type in how many days the peer expires.', { expires_at: ['is required'] });
    }
    const fields: ChangePeer = {
      ...(name !== peer.name && { name }),
      ...(endpoint.trim() !== (peer.endpoint ?? '') && { endpoint: endpoint.trim() || null }),
      ...(isConnector && changeRoutes(peer, network.private_cidr, wanted)),
      ...(isConnector && Number(priority) !== (peer.priority ?? 0) && { priority: Number(priority) }),
      ...(hasTags && changeTags(peer, splitWords(tags))),
      ...(isForever && !wasForever && { expires_at: null }),
      ...(!isForever && expiry !== null && { expires_at: expiry }),
    };
    await change(network, peer, fields);
    announce(`${name} is changed.`);
    await done();
  };
  return (
    <Dialog title={`Change ${peer.name}`} onClose={close}>
      <Form submit="Save" onSubmit={save} onCancel={close}>
        <Field label="Name" name="name" value={name} onChange={setName} />
        <Field
          label="Endpoint"
          name="endpoint"
          chars={32}
          value={endpoint}
          onChange={setEndpoint}
          hint="Where other peers dial it, such as 203.0.113.22:51820. Empty where it dials them."
        />
        {isConnector && (
          <>
            <Check label="Serves all routes of the network" isChecked={hasAll} onChange={setAll} />
            {!hasAll && (
              <Field
                label="Routes"
                name="routes"
                chars={22}
                value={routes}
                onChange={setRoutes}
                isMultiline
                hint={`Some of: ${network.routes.join(' ') || 'none'}`}
              />
            )}
            <Field
              label="Priority"
              name="priority"
              type="number"
              value={priority}
              onChange={setPriority}
              hint="0 to 1000. Of the healthy connectors of a route, the highest priority serves it."
            />
          </>
        )}
        {hasTags && (
          <Field
            label="Tags"
            name="tags"
            chars={32}
            value={tags}
            onChange={setTags}
            hint="Rules select peers by tag. Lower case letters, digits and hyphens, separated by blanks."
          />
        )}
        <Check label="Never expires" isChecked={isForever} onChange={setForever} />
        {!isForever && (
          <Field
            label="Days until it expires"
            name="expires_at"
            type="number"
            value={days}
            onChange={setDays}
            hint={
              peer.expires_at === undefined ? (
                'From now on.'
              ) : (
                <>
                  From now on. At present it expires <Time at={peer.expires_at} />.
                </>
              )
            }
          />
        )}
      </Form>
    </Dialog>
  );
}

function ApproveDialog({ network, peer, close, done }: PeerActionProps): JSX.Element {
  const run = async () => {
    await call<Peer>('POST', `api/networks/${network.id}/peers/${peer.id}/approve`);
    announce(`${peer.name} is approved.`);
    await done();
  };
  return (
    <Confirm title={`Approve ${peer.name}?`} action="Approve" onConfirm={run} onClose={close}>
      <p>
        {peer.identity_key === undefined
          ? 'This peer proved no identity. The fingerprint of its public key is '
          : 'The fingerprint of this peer is '}
        <code>{fingerprintOf(comparedKeyOf(peer))}</code>. Compare it with <code>cpn status</code> on the host.
      </p>
      <p>All hosts receive this peer then. To refuse it, remove it.</p>
    </Confirm>
  );
}

function SuspendDialog({ network, peer, close, done }: PeerActionProps): JSX.Element {
  const isSuspended = peer.suspended_at !== undefined;
  const action = isSuspended ? 'Resume' : 'Suspend';
  const run = async () => {
    await change(network, peer, { suspended: !isSuspended });
    announce(`${peer.name} is ${isSuspended ? 'in the network again' : 'suspended'}.`);
    await done();
  };
  return (
    <Confirm title={`${action} ${peer.name}?`} action={action} onConfirm={run} onClose={close}>
      <p>
        {isSuspended
          ? 'All hosts receive this peer again.'
          : 'All hosts drop this peer, and its token is refused. It keeps its name and address.'}
      </p>
      {!isSuspended && <Losses network={network} leaving={[peer]} />}
      {!isSuspended && <p>A user with an enrolment key that has uses left can join again. Revoke such keys too.</p>}
    </Confirm>
  );
}

function RemoveDialog({ network, peer, close, done }: PeerActionProps): JSX.Element {
  const run = async () => {
    await call('DELETE', `api/networks/${network.id}/peers/${peer.id}`);
    announce(`${peer.name} is removed.`);
    await done();
  };
  return (
    <Confirm title={`Remove ${peer.name}?`} action="Remove" onConfirm={run} onClose={close}>
      <p>All hosts drop this peer. It needs a new enrolment key to come back.</p>
      <Losses network={network} leaving={[peer]} />
    </Confirm>
  );
}
