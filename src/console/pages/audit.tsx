import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { AuditEntry } from '../../contract/audit.ts';
import type { NetworkSummary } from '../../contract/network.ts';
import { announce } from '../announcer.ts';
import { send } from '../client.ts';
import { type AuditList, addNewer, addOlder, readNewer, readOlder } from '../logic/events/audit-list.ts';
import {
  type AuditView,
  actionGroups,
  periods,
  readAuditView,
  toAuditQuery,
  toCsv,
  writeAuditView,
} from '../logic/events/audit-view.ts';
import {
  describeActor,
  describeDetails,
  describeTarget,
  findNames,
  type NetworkNames,
} from '../logic/events/describe-audit.ts';
import { download } from '../parts/download.tsx';
import { BusyButton } from '../parts/forms/busy-button.tsx';
import { Choice, Field } from '../parts/forms/form.tsx';
import { PageTitle } from '../parts/page-title.tsx';
import { Loading, Problem } from '../parts/request-state.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { usePolled } from '../polled.ts';
import { query, setQuery } from '../router.ts';

const intervalMs = 2000;
/** The maximum of entries per request of an export, and per file. */
const exportSize = 1000;
const mostExported = 50_000;
/** The pause after the last keystroke. */
const pauseMs = 250;

export function AuditPage(): JSX.Element {
  const view = readAuditView(query.value);
  const change = (fields: Partial<AuditView>) => setQuery(writeAuditView({ ...view, ...fields }));
  const filter = useSettled(
    toAuditQuery(
      view,
      useMemo(() => Date.now(), [view.hours]),
    ),
  );
  const networks = usePolled<NetworkSummary>('api/networks');
  return (
    <>
      <PageTitle>Audit</PageTitle>
      <p>What was done in the organization, newest first. New entries appear on their own.</p>
      <div class="search">
        <Field
          label="Search"
          name="search"
          type="search"
          value={view.search}
          onChange={(search) => change({ search })}
          placeholder="Name, action, address or detail"
        />
        <Choice
          label="Action"
          name="action"
          value={view.action}
          options={actionGroups}
          onChange={(action) => change({ action })}
        />
        <Choice
          label="Time"
          name="hours"
          value={view.hours}
          options={periods}
          onChange={(hours) => change({ hours })}
        />
      </div>
      <Entries key={filter} filter={filter} networks={networks.items ?? []} />
    </>
  );
}

/** Returns a text after it has stayed the same for a moment. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), pauseMs);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

interface EntriesProps {
  readonly filter: string;
  readonly networks: readonly NetworkSummary[];
}

function Entries({ filter, networks }: EntriesProps): JSX.Element {
  const [list, setList] = useState<AuditList | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const shown = useRef<AuditList>({ entries: [], isComplete: false });
  const show = (next: AuditList) => {
    shown.current = next;
    setList(next);
  };
  const read = (limit: number, before?: number) => readEntries(filter, limit, before);
  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const update = async () => {
      try {
        const came = document.hidden ? null : await readNewer(shown.current, read);
        if (isOver) return;
        if (came !== null) show(addNewer(shown.current, came));
        setProblem(null);
      } catch (error) {
        if (!isOver) setProblem(error instanceof Error ? error.message : String(error));
      }
      // Sequentially, even if the control plane is slow.
      if (!isOver) timer = setTimeout(() => void update(), intervalMs);
    };
    void update();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [filter]);
  const { entries, isComplete } = shown.current;
  const names = useMemo(() => findNames(networks, entries), [networks, entries]);
  const columns = useMemo(() => listColumns(names), [names]);
  const attempt = async (work: () => Promise<void>) => {
    try {
      setProblem(null);
      await work();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  const showOlder = () =>
    attempt(async () => {
      const asked = shown.current;
      const came = await readOlder(asked, read);
      show(addOlder(shown.current, asked, came));
    });
  const save = (kind: 'csv' | 'json') =>
    attempt(async () => {
      const all = await readAll(filter, (count) => announce(`${count} entries are read.`));
      const name = `cpn-audit-${new Date().toISOString().slice(0, 10)}.${kind}`;
      if (kind === 'csv') download(name, 'text/csv;charset=utf-8', toCsv(all, findNames(networks, all)));
      else download(name, 'application/json', `${JSON.stringify(all, null, 2)}\n`);
      const isCut = all.length >= mostExported;
      announce(isCut ? `The newest ${all.length} entries are saved.` : `${all.length} entries are saved.`);
    });
  return (
    <>
      <Problem text={problem} />
      <div aria-busy={list === null && problem === null}>
        {list === null && problem === null && <Loading />}
        {list !== null && entries.length === 0 && (
          <div class="empty">
            <p>No entry matches. Type a part of a name, an action or an address, or choose another time.</p>
          </div>
        )}
        {entries.length > 0 && (
          <>
            <div class="actions">
              <BusyButton onClick={() => save('csv')}>Export as CSV</BusyButton>
              <BusyButton onClick={() => save('json')}>Export as JSON</BusyButton>
            </div>
            <Table label="Audit" columns={columns} rows={entries} keyOf={({ id }) => id} />
          </>
        )}
      </div>
      {list !== null && !isComplete && (
        <div class="actions">
          <BusyButton onClick={showOlder}>Show older entries</BusyButton>
        </div>
      )}
    </>
  );
}

function listColumns(names: NetworkNames): readonly Column<AuditEntry>[] {
  return [
    { title: 'Time', width: 2, cell: ({ at }) => <Time at={at} /> },
    { title: 'Who', width: 4, cell: (entry) => <Clipped text={describeActor(entry)} /> },
    { title: 'Action', width: 3, cell: ({ action }) => <code>{action}</code> },
    { title: 'Target', width: 4, cell: (entry) => <Clipped text={describeTarget(entry)} /> },
    { title: 'From', width: 2.5, cell: ({ address }) => <code>{address ?? '–'}</code> },
    { title: 'Details', width: 6, cell: (entry) => <Clipped text={describeDetails(entry, names)} /> },
  ];
}

/** A text that a long table may truncate. */
const Clipped = ({ text }: { readonly text: string }) => <span title={text}>{text}</span>;

async function readEntries(filter: string, limit: number, before?: number): Promise<readonly AuditEntry[]> {
  const query = [`per_page=${limit}`, filter, before === undefined ? '' : `before=${before}`].filter(Boolean).join('&');
  const { data } = await (await send('GET', `api/audit?${query}`)).json();
  return data;
}

async function readAll(filter: string, onProgress: (count: number) => void): Promise<readonly AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for (;;) {
    const more = await readEntries(filter, exportSize, entries.at(-1)?.id);
    entries.push(...more);
    onProgress(entries.length);
    if (more.length < exportSize || entries.length >= mostExported) return entries;
  }
}
