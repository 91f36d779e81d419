import { type ComponentChildren, Fragment, type JSX } from 'preact';
import type { Network } from '../../contract/network.ts';
import type { Peer } from '../../contract/peer.ts';
import { explainPath, explainPeer, type Remedy } from '../logic/matrix/explain-path.ts';
import type { Reach } from '../logic/matrix/reach.ts';
import { linkTo } from '../logic/page/route.ts';
import { Copy } from './copy.tsx';
import { Dialog } from './forms/dialog.tsx';
import { State } from './state.tsx';
import { Time } from './time.tsx';

interface WhyProps {
  readonly network: Network;
  readonly reach: Reach;
  readonly from: Peer;
  readonly to: Peer;
  readonly onClose: () => void;
  /** What the rules decide, above the path. */
  readonly children?: ComponentChildren;
}

export function Why({ network, reach, from, to, onClose, children }: WhyProps): JSX.Element {
  const isSelf = from.id === to.id;
  const explanation = isSelf ? null : explainPath(network, reach, from, to);
  const { summary, facts, remedies } = explanation ?? explainPeer(network, reach, from);
  const reportedAt = reach.health.get(from.id)?.reported_at ?? null;
  return (
    <Dialog title={isSelf ? from.name : `${from.name} to ${to.name}`} onClose={onClose}>
      {children}
      {explanation && (
        <p>
          <State state={explanation.state} />
        </p>
      )}
      <p>{summary}</p>
      <Facts facts={[...facts, ['Report', reportedAt === null ? 'none' : <Time at={reportedAt} />]]} />
      <Remedies remedies={remedies} />
      <div class="actions">
        {[from, ...(isSelf ? [] : [to])].map(({ id, name }) => (
          <a key={id} href={linkTo({ page: 'peer', network: network.id, peer: id })} onClick={onClose}>
            All about {name}
          </a>
        ))}
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

export type Fact = readonly [name: string, value: ComponentChildren];

export function Facts({ facts }: { readonly facts: readonly Fact[] }): JSX.Element {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}

export function Remedies({ remedies }: { readonly remedies: readonly Remedy[] }): JSX.Element | null {
  if (remedies.length === 0) return null;
  return (
    <>
      {remedies.map(({ at, command, purpose }) => (
        <Copy key={`${at} ${command}`} label={`${purpose} On ${at}, type:`} text={command} />
      ))}
    </>
  );
}
