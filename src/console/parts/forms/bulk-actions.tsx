import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Network } from '../../../contract/network.ts';
import type { ChangePeer, Peer } from '../../../contract/peer.ts';
import { announce } from '../../announcer.ts';
import { ApiError, call, isOutcomeUnknown } from '../../client.ts';
import {
  type BulkAction,
  countPeers,
  describeFailures,
  type Failure,
  isAlreadyDone,
  namePeers,
} from '../../logic/peers/bulk.ts';
import { inDays } from '../../logic/text/format.ts';
import { Losses } from '../removal.tsx';
import { Dialog } from './dialog.tsx';
import { Check, Field, Form, useIsShown } from './form.tsx';

export type { BulkAction } from '../../logic/peers/bulk.ts';

interface BulkActionsProps {
  readonly peers: readonly Peer[];
  readonly onOpen: (action: BulkAction) => void;
  readonly onClear: () => void;
}

export function BulkActions({ peers, onOpen, onClear }: BulkActionsProps): JSX.Element {
  const hasListed = peers.some(({ suspended_at }) => suspended_at === undefined);
  const hasSuspended = peers.some(isSuspended);
  return (
    <div class="bulk" role="toolbar" aria-label="Selected peers">
      <span>{countPeers(peers.length)} selected</span>
      {hasListed && (
        <button type="button" onClick={() => onOpen('suspend')}>
          Suspend
        </button>
      )}
      {hasSuspended && (
        <button type="button" onClick={() => onOpen('resume')}>
          Resume
        </button>
      )}
      <button type="button" onClick={() => onOpen('expire')}>
        Set the expiry
      </button>
      <button type="button" class="danger" onClick={() => onOpen('remove')}>
        Remove
      </button>
      <button type="button" onClick={onClear}>
        Clear
      </button>
    </div>
  );
}

/** Only its own approval brings a waiting peer into the network. */
function isSuspended({ suspended_at, awaiting_approval }: Peer): boolean {
  return suspended_at !== undefined && awaiting_approval === undefined;
}

interface BulkDialogProps {
  readonly network: Network;
  readonly peers: readonly Peer[];
  readonly action: BulkAction;
  readonly onClose: () => void;
  /** Called after the action, with the remaining peers. */
  readonly onDone: (left: readonly number[]) => Promise<void>;
}

const titles: Readonly<Record<BulkAction, string>> = {
  suspend: 'Suspend',
  resume: 'Resume',
  expire: 'Set the expiry of',
  remove: 'Remove',
};

const done: Readonly<Record<BulkAction, string>> = {
  suspend: 'suspended',
  resume: 'in the network again',
  expire: 'changed',
  remove: 'removed',
};

/** One confirmation for all selected peers, with their names and the consequences. */
export function BulkDialog({ network, peers: selected, action, onClose, onDone }: BulkDialogProps): JSX.Element {
  // The selection that the user saw, even if peers change meanwhile.
  const [peers] = useState(() =>
    selected.filter((peer) =>
      action === 'suspend' ? peer.suspended_at === undefined : action === 'resume' ? isSuspended(peer) : true,
    ),
  );
  const [days, setDays] = useState('');
  const [isForever, setForever] = useState(false);
  const [count, setCount] = useState<number | null>(null);
  const isShown = useIsShown();
  const title = `${titles[action]} ${countPeers(peers.length)}`;
  const run = async () => {
    const fields = readFields(action, isForever, days);
    const failed: Failure[] = [];
    const left: number[] = [];
    for (const [at, peer] of peers.entries()) {
      // Closing the dialog or leaving the page stops before the next peer.
      if (!isShown()) left.push(peer.id);
      else {
        setCount(at);
        const path = `api/networks/${network.id}/peers/${peer.id}`;
        await (fields === null ? call('DELETE', path) : call('PATCH', path, fields)).catch((error: unknown) => {
          if (error instanceof ApiError && isAlreadyDone(action, error.status)) return;
          if (error instanceof ApiError && error.status === 401) throw error;
          left.push(peer.id);
          const message = error instanceof Error ? error.message : String(error);
          failed.push({ name: peer.name, message, isUnknown: isOutcomeUnknown(error) });
        });
      }
    }
    setCount(null);
    const changed = peers.length - left.length;
    if (changed > 0) announce(`${countPeers(changed)} ${changed === 1 ? 'is' : 'are'} ${done[action]}.`);
    await onDone(left);
    const problem = describeFailures(failed, done[action]);
    if (problem !== null) throw new Error(problem);
    if (isShown()) onClose();
  };
  return (
    <Dialog title={`${title}${action === 'expire' ? '' : '?'}`} onClose={onClose}>
      <Form
        submit={action === 'expire' ? 'Save' : titles[action]}
        isDangerous={action === 'remove' || action === 'suspend'}
        onSubmit={run}
        onCancel={onClose}
      >
        <p>
          <strong>{namePeers(peers)}</strong>
        </p>
        <Consequence action={action} />
        {(action === 'suspend' || action === 'remove') && <Losses network={network} leaving={peers} />}
        {action === 'expire' && (
          <>
            <Check label="Never expires" isChecked={isForever} onChange={setForever} />
            {!isForever && (
              <Field
                label="Days until they expire"
                name="expires_at"
                type="number"
                value={days}
                onChange={setDays}
                hint="From now on."
              />
            )}
          </>
        )}
        {count !== null && (
          <p role="status">
            {count} of {peers.length} done.
          </p>
        )}
      </Form>
    </Dialog>
  );
}

function readFields(action: BulkAction, isForever: boolean, days: string): ChangePeer | null {
  if (action === 'remove') return null;
  if (action !== 'expire') return { suspended: action === 'suspend' };
  const expires_at = isForever ? null : inDays(days, new Date());
  if (expires_at === null && !isForever) {
    throw new ApiError(422, 'Type in how many days the peers expire.', { expires_at: ['is required'] });
  }
  return { expires_at };
}

function Consequence({ action }: { readonly action: BulkAction }): JSX.Element {
  switch (action) {
    case 'suspend':
      return <p>All hosts drop these peers, and their tokens are refused. They keep their names and addresses.</p>;
    case 'resume':
      return <p>All hosts receive these peers again.</p>;
    case 'expire':
      return <p>A peer that expires leaves the network as a suspended one does. A later date brings it back.</p>;
    case 'remove':
      return <p>All hosts drop these peers. Each needs a new enrolment key to come back.</p>;
  }
}
