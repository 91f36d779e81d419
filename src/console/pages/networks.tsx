import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { HealthSummary } from '../../contract/health.ts';
import type { NetworkSummary } from '../../contract/network.ts';
import { announce } from '../announcer.ts';
import { call } from '../client.ts';
import { hasTrouble } from '../logic/network/summarize.ts';
import { linkTo } from '../logic/page/route.ts';
import { splitWords } from '../logic/text/format.ts';
import { Dialog } from '../parts/forms/dialog.tsx';
import { Field, Form, useIsShown } from '../parts/forms/form.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { List, Pending, Problem } from '../parts/request-state.tsx';
import { State } from '../parts/state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { usePolled } from '../polled.ts';
import { go } from '../router.ts';
import { canEdit, isLimited } from '../session.ts';

export function NetworksPage(): JSX.Element {
  const networks = usePolled<NetworkSummary>('api/networks');
  const health = usePolled<HealthSummary>('api/health');
  const byNetwork = useMemo(() => new Map(health.items?.map((each) => [each.network, each])), [health.items]);
  const isReading = health.items === null && health.problem === null;
  const columns = useMemo(() => listColumns(byNetwork, isReading), [byNetwork, isReading]);
  const troubled = (networks.items ?? []).filter(({ id }) => isTroubled(byNetwork.get(id)));
  const [isCreating, setCreating] = useState(false);
  const mayCreate = canEdit() && !isLimited();
  return (
    <>
      <div class="heading">
        <PageTitle>Networks</PageTitle>
        {mayCreate && (
          <button type="button" class="primary" onClick={() => setCreating(true)}>
            Create a network
          </button>
        )}
      </div>
      <List
        from={networks}
        empty={
          isLimited() ? (
            <p>You are limited to networks that do not exist any more. Ask an owner for others.</p>
          ) : (
            <p>
              There is no network yet. {mayCreate ? 'Click “Create a network”' : 'Ask a member to create one'}, or type{' '}
              <code>cpn network create --name office --cidr 10.77.0.0/24</code>
            </p>
          )
        }
      >
        {(items) => (
          <>
            <Problem text={health.problem} />
            {health.items !== null && (
              <p class="lead" role="status">
                {troubled.length === 0
                  ? 'Nothing is down.'
                  : `${troubled.length} of ${items.length} networks ${troubled.length === 1 ? 'needs' : 'need'} attention.`}
              </p>
            )}
            <Table label="Networks" columns={columns} rows={items} keyOf={({ id }) => id} />
          </>
        )}
      </List>
      {isCreating && <CreateNetwork onClose={() => setCreating(false)} />}
    </>
  );
}

const isTroubled = (health: HealthSummary | undefined) => health !== undefined && hasTrouble(health);

function listColumns(
  health: ReadonlyMap<number, HealthSummary>,
  isReading: boolean,
): readonly Column<NetworkSummary>[] {
  return [
    { title: 'Name', cell: ({ id, name }) => <a href={linkTo({ page: 'network', network: id })}>{name}</a> },
    { title: 'State', cell: ({ id }) => (isReading ? <Pending /> : <NetworkState health={health.get(id)} />) },
    { title: 'Peers online', cell: ({ id }) => (isReading ? <Pending /> : countPeers(health.get(id))) },
    { title: 'Range', cell: ({ private_cidr }) => <code>{private_cidr}</code> },
    { title: 'Routes', cell: ({ routes }) => <code>{routes.join(' ') || '–'}</code> },
    { title: 'Description', cell: ({ description }) => description || '–' },
  ];
}

/** The problems of a network, each with its shape. Earlier versions send no summary. */
function NetworkState({ health }: { readonly health: HealthSummary | undefined }): JSX.Element {
  if (health === undefined) return <>–</>;
  const { routes, peers, offline_servers, silent_connectors } = health;
  if (peers.online + peers.offline + peers.unknown === 0) return <>no peers</>;
  if (!hasTrouble(health)) return <State state="direct" text="nothing is down" />;
  return (
    <span class="links">
      {routes.dead > 0 && <State state="down" text={count(routes.dead, 'dead route')} />}
      {routes.unknown > 0 && <State state="unknown" text={count(routes.unknown, 'unknown route')} />}
      {offline_servers > 0 && <State state="down" text={`${count(offline_servers, 'server')} offline`} />}
      {silent_connectors > 0 && (
        <State state="never" text={`${count(silent_connectors, 'connector')} never answered`} />
      )}
    </span>
  );
}

const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`;

function countPeers(health: HealthSummary | undefined): string {
  if (health === undefined) return '–';
  const { online, offline, unknown } = health.peers;
  return `${online} of ${online + offline + unknown}`;
}

function CreateNetwork({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const [name, setName] = useState('');
  const [range, setRange] = useState('');
  const [routes, setRoutes] = useState('');
  const [description, setDescription] = useState('');
  const isShown = useIsShown();
  const create = async () => {
    const body = { name, private_cidr: range.trim(), description, routes: splitWords(routes) };
    const { id } = await call<NetworkSummary>('POST', 'api/networks', body);
    announce(`The network ${name} is created.`);
    if (!isShown()) return;
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
          chars={18}
          value={range}
          onChange={setRange}
          hint="Private addresses for the peers, such as 10.77.0.0/24."
        />
        <Field
          label="Routes"
          name="routes"
          chars={22}
          value={routes}
          onChange={setRoutes}
          isMultiline
          hint="LANs behind connectors, such as 192.168.50.0/24. May be empty."
        />
        <Field label="Description" name="description" chars={48} value={description} onChange={setDescription} />
      </Form>
    </Dialog>
  );
}
