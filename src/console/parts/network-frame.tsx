import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Network } from '../../contract/network.ts';
import { networkSource, useLive } from '../live.ts';
import { linkTo, type NetworkPage } from '../logic/page/route.ts';
import { route } from '../router.ts';
import { useHasRules } from '../rules.ts';
import { canEdit } from '../session.ts';
import { Deletion } from './deletion.tsx';
import { PageTitle } from './page-title.tsx';
import { Loading, Problem } from './request-state.tsx';

interface NetworkFrameProps {
  readonly id: number;
  /** The title of the page within the network. */
  readonly title: string;
  readonly children: (network: Network) => ComponentChildren;
}

export function NetworkFrame({ id, title, children }: NetworkFrameProps): JSX.Element {
  const { data, problem } = useLive(networkSource(id));
  const hasRules = useHasRules(id);
  const [deleted, setDeleted] = useState<number | null>(null);
  return (
    <>
      <PageTitle>{data === null ? title : `${data.name}: ${title}`}</PageTitle>
      <nav class="tabs" aria-label="Network">
        <Tab id={id} page="network" text="Overview" />
        <Tab id={id} page="peers" text="Peers" />
        <Tab id={id} page="events" text="Events" />
        {hasRules && <Tab id={id} page="rules" text="Rules" />}
        {canEdit() && <Tab id={id} page="add-host" text="Add a host" />}
        {canEdit() && <Tab id={id} page="keys" text="Enrolment keys" />}
      </nav>
      <Problem text={problem} />
      {problem !== null && <Deletion key={id} id={id} onDeleted={() => setDeleted(id)} />}
      <div aria-busy={data === null && problem === null}>
        {data === null && problem === null && <Loading />}
        {data !== null && deleted !== id && children(data)}
      </div>
    </>
  );
}

interface TabProps {
  readonly id: number;
  readonly page: NetworkPage;
  readonly text: string;
}

function Tab({ id, page, text }: TabProps): JSX.Element {
  return (
    <a href={linkTo({ page, network: id })} aria-current={route.value.page === page ? 'page' : undefined}>
      {text}
    </a>
  );
}
