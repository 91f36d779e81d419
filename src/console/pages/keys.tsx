import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { EnrollmentKey } from '../../contract/enrollment-key.ts';
import { announce } from '../announcer.ts';
import { call } from '../client.ts';
import { linkTo } from '../logic/page/route.ts';
import { peerTypes } from '../logic/peers/peer-text.ts';
import { Confirm } from '../parts/forms/dialog.tsx';
import { NetworkFrame } from '../parts/network-frame.tsx';
import { List } from '../parts/request-state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { usePolled } from '../polled.ts';

export function KeysPage({ id }: { readonly id: number }): JSX.Element {
  return (
    <NetworkFrame id={id} title="enrolment keys">
      {() => <Keys id={id} />}
    </NetworkFrame>
  );
}

function Keys({ id }: { readonly id: number }): JSX.Element {
  const path = `api/networks/${id}/enrollment-keys`;
  const keys = usePolled<EnrollmentKey>(path);
  const [revoked, setRevoked] = useState<EnrollmentKey | null>(null);
  const revoke = async (key: EnrollmentKey) => {
    await call('DELETE', `${path}/${key.id}`);
    await keys.refresh();
    announce(`The key ${key.name} is revoked.`);
    setRevoked((present) => (present === key ? null : present));
  };
  const columns: readonly Column<EnrollmentKey>[] = [
    { title: 'Name', cell: ({ name }) => name },
    { title: 'Uses', cell: ({ uses, max_uses }) => `${uses} of ${max_uses}` },
    { title: 'For', cell: ({ peer_types }) => peer_types?.map((type) => peerTypes[type]).join(', ') ?? 'any type' },
    { title: 'Routes', cell: ({ routes }) => routes?.join(' ') ?? 'any' },
    { title: 'Tags', cell: ({ tags }) => tags?.join(' ') ?? 'none' },
    { title: 'Expires', cell: ({ expires_at }) => <Time at={expires_at} /> },
    {
      title: 'Actions',
      isActions: true,
      cell: (key) => (
        <button type="button" class="danger" onClick={() => setRevoked(key)}>
          Revoke<span class="hidden"> {key.name}</span>
        </button>
      ),
    },
  ];
  return (
    <>
      <p>A host enrols with a key. A key is shown once, when it is made. Peers stay when their key is revoked.</p>
      <List
        from={keys}
        empty={
          <p>
            There is no key that a host can use. Go to{' '}
            <a href={linkTo({ page: 'add-host', network: id })}>Add a host</a>, or type{' '}
            <code>cpn key create {id} --name web-1</code>
          </p>
        }
      >
        {(items) => <Table label="Enrolment keys" columns={columns} rows={items} keyOf={(key) => key.id} />}
      </List>
      {revoked !== null && (
        <Confirm
          title={`Revoke ${revoked.name}?`}
          action="Revoke"
          onConfirm={() => revoke(revoked)}
          onClose={() => setRevoked(null)}
        >
          <p>No further host can enrol with this key.</p>
        </Confirm>
      )}
    </>
  );
}
