import type { JSX } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { Network } from '../../contract/network.ts';
import { announce } from '../announcer.ts';
import { call } from '../client.ts';
import { eventSource, healthSource, useLive } from '../live.ts';
import { indexReach } from '../logic/matrix/reach.ts';
import { linkTo } from '../logic/page/route.ts';
import { describeLoss } from '../logic/peers/describe-removal.ts';
import { splitWords } from '../logic/text/format.ts';
import { Confirm, Dialog } from '../parts/forms/dialog.tsx';
import { Field, Form, useIsShown } from '../parts/forms/form.tsx';
import { NetworkFrame } from '../parts/network-frame.tsx';
import { PendingRemoval } from '../parts/removal.tsx';
import { Loading, Problem } from '../parts/request-state.tsx';
import { Summary } from '../parts/summary.tsx';
import { go } from '../router.ts';
import { canEdit } from '../session.ts';
import { NetworkReach } from './network-reach.tsx';
import { NetworkFailovers, NetworkRoutes } from './network-routes.tsx';
import { NetworkTraffic } from './network-traffic.tsx';

export function NetworkPage({ id }: { readonly id: number }): JSX.Element {
  // Read concurrently with the network, not after it.
  useLive(healthSource(id));
  useLive(eventSource(id));
  return (
    <NetworkFrame id={id} title="overview">
      {(network) => <Overview network={network} />}
    </NetworkFrame>
  );
}

type Open = 'change' | 'delete' | null;

function Overview({ network }: { readonly network: Network }): JSX.Element {
  const { id, routes, peers, description } = network;
  const [open, setOpen] = useState<Open>(null);
  const health = useLive(healthSource(id));
  const events = useLive(eventSource(id));
  const isReading = health.data === null && health.problem === null;
  const reach = useMemo(() => (health.data === null ? null : indexReach(peers, health.data)), [peers, health.data]);
  return (
    <>
      <PendingRemoval network={network} />
      {description !== '' && <p>{description}</p>}
      {peers.length > 0 && (
        <div aria-busy={isReading}>
          <Problem text={health.problem} />
          {isReading && <Loading />}
          {health.data !== null && <Summary {...{ network, health: health.data, events: events.data }} />}
        </div>
      )}
      {peers.length === 0 && (
        <div class="empty">
          <p>
            There is no peer yet. Go to <a href={linkTo({ page: 'add-host', network: id })}>Add a host</a>, or type{' '}
            <code>cpn key create {id} --name web-1</code>
          </p>
        </div>
      )}
      {!(isReading && routes.length > 0) && <NetworkRoutes network={network} health={health.data} />}
      {routes.length > 0 && (
        <>
          <Problem text={events.problem} />
          {events.data === null && events.problem === null && (
            <div aria-busy="true">
              <Loading />
            </div>
          )}
          {events.data !== null && <NetworkFailovers network={network} events={events.data} />}
        </>
      )}
      {reach !== null && peers.length > 0 && <NetworkReach network={network} reach={reach} />}
      {health.data !== null && reach !== null && peers.length > 0 && (
        <NetworkTraffic network={id} health={health.data} reach={reach} />
      )}
      {canEdit() && (
        <div class="actions">
          <button type="button" onClick={() => setOpen('change')}>
            Change the network
          </button>
          <button type="button" class="danger" onClick={() => setOpen('delete')}>
            Delete the network
          </button>
        </div>
      )}
      {open === 'change' && <ChangeNetwork network={network} onClose={() => setOpen(null)} />}
      {open === 'delete' && <DeleteNetwork network={network} onClose={() => setOpen(null)} />}
    </>
  );
}

interface NetworkDialogProps {
  readonly network: Network;
  readonly onClose: () => void;
}

function ChangeNetwork({ network, onClose }: NetworkDialogProps): JSX.Element {
  // The state that the user saw, even if the network changes meanwhile.
  const [seen] = useState(network);
  const [name, setName] = useState(network.name);
  const [description, setDescription] = useState(network.description);
  const [routes, setRoutes] = useState(network.routes.join('\n'));
  const isShown = useIsShown();
  const change = async () => {
    const wanted = splitWords(routes);
    const isSame = wanted.toSorted().join() === seen.routes.toSorted().join();
    await call('PATCH', `api/networks/${seen.id}`, {
      ...(name !== seen.name && { name }),
      ...(description !== seen.description && { description }),
      ...(!isSame && { routes: wanted, expected_routes: seen.routes }),
    });
    announce('The network is changed.');
    if (isShown()) onClose();
  };
  return (
    <Dialog title="Change the network" onClose={onClose}>
      <Form submit="Save" onSubmit={change} onCancel={onClose}>
        <Field label="Name" name="name" value={name} onChange={setName} />
        <Field label="Description" name="description" chars={48} value={description} onChange={setDescription} />
        <Field
          label="Routes"
          name="routes"
          chars={22}
          value={routes}
          onChange={setRoutes}
          isMultiline
          hint="One per line. All hosts lose a route that you remove here."
        />
      </Form>
    </Dialog>
  );
}

function DeleteNetwork({ network, onClose }: NetworkDialogProps): JSX.Element {
  const isShown = useIsShown();
  const remove = async () => {
    await call('DELETE', `api/networks/${network.id}`);
    announce(`The network ${network.name} is deleted.`);
    if (!isShown()) return;
    onClose();
    // Events are deleted too; the overview shows which hosts have taken their tunnel down.
    go({ page: 'network', network: network.id });
  };
  return (
    <Confirm title={`Delete ${network.name}?`} action="Delete" onConfirm={remove} onClose={onClose}>
      <p>
        {describeLoss(network.peers.length)} Its hosts take their tunnels down within a minute: connections through it
        end, SSH to an address in <code>{network.private_cidr}</code> or behind a connector too. Only a restore from a
        backup brings it back.
      </p>
    </Confirm>
  );
}
