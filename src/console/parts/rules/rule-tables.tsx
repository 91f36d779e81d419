import type { ComponentChildren, JSX } from 'preact';
import type { AccessRule, Enforcement, RuleTest } from '../../../contract/rules.ts';
import { linkTo } from '../../logic/page/route.ts';
import { describeTested, describeTraffic, enforcers, sortEnforcement } from '../../logic/rules/describe-rules.ts';
import { toSentence } from '../../logic/text/format.ts';
import { type Column, Table } from '../table.tsx';

const mostShown = 8;

/** The selectors of one side of a rule. A peer that was removed shows as such. */
function Selectors({ of }: { readonly of: readonly string[] }): JSX.Element {
  const more = of.length - mostShown;
  return (
    <span class="links" title={more > 0 ? of.join(' ') : undefined}>
      {of.slice(0, mostShown).map((selector) => (
        <span key={selector}>
          <code>{selector}</code>
          {selector.startsWith('gone:') && ' (removed)'}
        </span>
      ))}
      {more > 0 && <span>and {more} more</span>}
    </span>
  );
}

interface RowsProps<Row> {
  readonly rows: readonly Row[];
  /** The buttons of a row. */
  readonly actions?: (row: Row, at: number) => ComponentChildren;
}

interface Placed<Row> {
  readonly row: Row;
  readonly at: number;
}

function place<Row>(rows: readonly Row[]): readonly Placed<Row>[] {
  return rows.map((row, at) => ({ row, at }));
}

function actionsColumn<Row>(actions: RowsProps<Row>['actions']): readonly Column<Placed<Row>>[] {
  if (actions === undefined) return [];
  return [{ title: 'Actions', isActions: true, width: 3, cell: ({ row, at }) => actions(row, at) }];
}

export function RuleTable({ rows, actions }: RowsProps<AccessRule>): JSX.Element {
  return (
    <Table
      label="Rules"
      rows={place(rows)}
      keyOf={({ row }) => row.name}
      columns={[
        { title: 'Name', width: 2, cell: ({ row }) => row.name },
        { title: 'From', width: 3, cell: ({ row }) => <Selectors of={row.from} /> },
        { title: 'To', width: 3, cell: ({ row }) => <Selectors of={row.to} /> },
        { title: 'Connections', width: 2, cell: ({ row }) => describeTraffic(row) },
        ...actionsColumn(actions),
      ]}
    />
  );
}

export function TestTable({ rows, actions }: RowsProps<RuleTest>): JSX.Element {
  return (
    <Table
      label="Tests"
      rows={place(rows)}
      keyOf={({ at }) => at}
      columns={[
        { title: 'From', width: 3, cell: ({ row }) => <Selectors of={[row.from]} /> },
        { title: 'To', width: 3, cell: ({ row }) => <Selectors of={[row.to]} /> },
        { title: 'Connections', width: 2, cell: ({ row }) => describeTested(row) },
        { title: 'Must be', width: 1, cell: ({ row }) => (row.expect === 'allow' ? 'allowed' : 'denied') },
        ...actionsColumn(actions),
      ]}
    />
  );
}

/** Probable mistakes of rules. */
export function Warnings({ texts }: { readonly texts: readonly string[] }): JSX.Element {
  return (
    <>
      {texts.map((text) => (
        <p key={text} class="problem">
          <span aria-hidden="true">✕ </span>
          {toSentence(text)}
        </p>
      ))}
    </>
  );
}

interface EnforcementProps {
  readonly network: number;
  readonly enforcement: readonly Enforcement[];
}

/** What enforces the rules for connections to each peer. Peers without come first. */
export function EnforcementTable({ network, enforcement }: EnforcementProps): JSX.Element {
  return (
    <Table
      label="Who enforces the rules"
      rows={sortEnforcement(enforcement)}
      keyOf={({ peer }) => peer.id}
      columns={[
        {
          title: 'To',
          cell: ({ peer }) => <a href={linkTo({ page: 'peer', network, peer: peer.id })}>{peer.name}</a>,
        },
        { title: 'Enforced by', cell: ({ by }) => (by === 'nothing' ? `✕ ${enforcers[by]}` : enforcers[by]) },
      ]}
    />
  );
}
