import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { NetworkSummary } from '../../contract/network.ts';
import { announce } from '../announcer.ts';
import { call } from '../client.ts';
import { linkTo } from '../logic/page/route.ts';
import { splitWords } from '../logic/text/words.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Field, Form } from '../parts/form.tsx';
import { List } from '../parts/list.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { usePolled } from '../polled.ts';
import { go } from '../router.ts';
import { canEdit } from '../session.ts';

const columns: readonly Column<NetworkSummary>[] = [
  { title: 'Name', cell: ({ id, name }) => <a href={linkTo({ page: 'network', network: id })}>{name}</a> },
  { title: 'Range', cell: ({ private_cidr }) => <code>{private_cidr}</code> },
  { title: 'Routes', cell: ({ routes }) => <code>{routes.join(' ')}</code> },
  { title: 'Description', cell: ({ description }) => description },
];

export function NetworksPage(): JSX.Element {
  const networks = usePolled<NetworkSummary>('api/networks');
  const [isCreating, setCreating] = useState(false);
  return (
    <>
      <div class="heading">
        <PageTitle>Networks</PageTitle>
        {canEdit() && (
          <button type="button" class="primary" onClick={() => setCreating(true)}>
            Create a network
          </button>
        )}
      </div>
      <List
        from={networks}
        empty={
          <p>
            There is no network yet. {canEdit() ? 'Click “Create a network”' : 'Ask a member to create one'}, or type{' '}
            <code>cpn network create --name office --cidr 10.77.0.0/24</code>
          </p>
        }
      >
        {(items) => <Table label="Networks" columns={columns} rows={items} keyOf={({ id }) => id} />}
      </List>
      {isCreating && <CreateNetwork onClose={() => setCreating(false)} />}
    </>
  );
}

function CreateNetwork({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const [name, setName] = useState('');
  const [range, setRange] = useState('');
  const [routes, setRoutes] = useState('');
  const [description, setDescription] = useState('');
  const create = async () => {
    const body = { name, private_cidr: range.trim(), description, routes: splitWords(routes) };
    const { id } = await call<NetworkSummary>('POST', 'api/networks', body);
    announce(`The network ${name} is created.`);
    onClose();
    go({ page: 'network', network: id });
  };
  return (
    <Dialog title="Create a network" onClose={onClose}>
      <Form submit="Create" onSubmit={create} onCancel={onClose}>
        <Field label="Name" name="name" value={name} onChange={setName} />
        <Field
          label="Range"
          name="private_cidr"
          value={range}
          onChange={setRange}
          hint="Private addresses for the peers, such as 10.77.0.0/24."
        />
        <Field
          label="Routes"
          name="routes"
          value={routes}
          onChange={setRoutes}
          isMultiline
          hint="LANs behind connectors, such as 192.168.50.0/24. May be empty."
        />
        <Field label="Description" name="description" value={description} onChange={setDescription} />
      </Form>
    </Dialog>
  );
}
