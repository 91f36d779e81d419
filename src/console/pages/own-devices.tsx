import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { OwnDevice } from '../../contract/own-device.ts';
import { announce } from '../announcer.ts';
import { call } from '../client.ts';
import { Confirm } from '../parts/forms/dialog.tsx';
import { Field, Form } from '../parts/forms/form.tsx';
import { List } from '../parts/request-state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { usePolled } from '../polled.ts';

/** The own devices of the user in all networks. */
export function OwnDevices(): JSX.Element {
  const devices = usePolled<OwnDevice>('api/auth/devices');
  const [removed, setRemoved] = useState<OwnDevice | null>(null);
  const [renamed, setRenamed] = useState<OwnDevice | null>(null);
  const [name, setName] = useState('');
  const remove = async ({ id, name: shown }: OwnDevice) => {
    await call('DELETE', `api/auth/devices/${id}`);
    await devices.refresh();
    announce(`The device ${shown} is removed.`);
    setRemoved(null);
  };
  const rename = async (device: OwnDevice) => {
    await call('PATCH', `api/auth/devices/${device.id}`, { name });
    await devices.refresh();
    announce(`The device ${device.name} is now ${name}.`);
    setRenamed(null);
  };
  const columns: readonly Column<OwnDevice>[] = [
    { title: 'Name', cell: ({ name: shown }) => shown },
    { title: 'Network', cell: ({ network }) => network.name },
    { title: 'Address', cell: ({ address }) => <code>{address}</code> },
    { title: 'State', cell: describeState },
    { title: 'Until', cell: ({ expires_at }) => (expires_at === null ? 'no end' : <Time at={expires_at} />) },
    {
      title: 'Actions',
      isActions: true,
      cell: (device) => (
        <>
          <button
            type="button"
            onClick={() => {
              setName(device.name);
              setRenamed(device);
            }}
          >
            Rename<span class="hidden"> {device.name}</span>
          </button>
          {device.state !== 'suspended' && (
            <button type="button" class="danger" onClick={() => setRemoved(device)}>
              Remove<span class="hidden"> {device.name}</span>
            </button>
          )}
        </>
      ),
    },
  ];
  return (
    <>
      <h2>Your devices</h2>
      <List
        from={devices}
        empty={
          <p>
            There is no device of yours. Where a network lets you, type <code>cpn join --login</code> on the device
          </p>
        }
      >
        {(items) => <Table label="Your devices" columns={columns} rows={items} keyOf={({ id }) => id} />}
      </List>
      {renamed !== null && (
        <Form submit="Rename" onSubmit={() => rename(renamed)}>
          <Field label={`New name of ${renamed.name}`} name="device_name" value={name} onChange={setName} />
        </Form>
      )}
      {removed !== null && (
        <Confirm
          title={`Remove the device ${removed.name}?`}
          action="Remove"
          onConfirm={() => remove(removed)}
          onClose={() => setRemoved(null)}
        >
          <p>No host of {removed.network.name} talks to it any more. It can join again after a login.</p>
        </Confirm>
      )}
    </>
  );
}

function describeState({ state, reauth_hours }: OwnDevice): string {
  if (state === 'suspended') return 'suspended; an admin resumes it';
  if (state === 'waiting') return 'waits for the approval of an admin';
  if (state === 'active') return 'active';
  return reauth_hours === null ? 'expired; an admin resumes it' : 'expired until your next login';
}
