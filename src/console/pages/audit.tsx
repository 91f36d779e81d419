import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { AuditEntry } from '../../contract/audit.ts';
import { send } from '../client.ts';
import { describeActor, describeDetails, describeTarget } from '../logic/events/describe-audit.ts';
import { formatTime } from '../logic/text/time.ts';
import { PageTitle } from '../parts/page-title.tsx';
import { Problem } from '../parts/problem.tsx';
import { type Column, Table } from '../parts/table.tsx';

const pageSize = 200;
/** Of what is read every few seconds. */
const fewEntries = 20;
const intervalMs = 2000;

const columns: readonly Column<AuditEntry>[] = [
  { title: 'Time', cell: ({ at }) => <time dateTime={at}>{formatTime(at)}</time> },
  { title: 'Who', cell: describeActor },
  { title: 'Action', cell: ({ action }) => <code>{action}</code> },
  { title: 'Target', cell: describeTarget },
  { title: 'From', cell: ({ address }) => <code>{address ?? '–'}</code> },
  { title: 'Details', cell: (entry) => <span title={describeDetails(entry)}>{describeDetails(entry)}</span> },
];

export function AuditPage(): JSX.Element {
  const [newest, setNewest] = useState<readonly AuditEntry[] | null>(null);
  const [older, setOlder] = useState<readonly AuditEntry[]>([]);
  const [isComplete, setComplete] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const latest = useRef<AuditEntry | undefined>(undefined);
  useEffect(() => {
    let isOver = false;
    const update = async () => {
      if (document.hidden) return;
      try {
        const entries = await readNewer(latest.current);
        if (isOver) return;
        latest.current = entries[0] ?? latest.current;
        setNewest((before) => merge(entries, before ?? []));
        setProblem(null);
      } catch (error) {
        if (!isOver) setProblem(error instanceof Error ? error.message : String(error));
      }
    };
    void update();
    const timer = setInterval(() => void update(), intervalMs);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, []);
  const entries = [...(newest ?? []), ...older];
  const readOlder = async () => {
    const last = entries.at(-1);
    if (last === undefined) return;
    try {
      const more = await readEntries(pageSize, last.id);
      setOlder([...older, ...more]);
      setComplete(more.length < pageSize);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <>
      <PageTitle>Audit</PageTitle>
      <p>What was done in the organization, newest first. New entries appear by themselves.</p>
      <Problem text={problem} />
      <div aria-busy={newest === null && problem === null}>
        {newest !== null && <Table label="Audit" columns={columns} rows={entries} keyOf={({ id }) => id} />}
      </div>
      {newest !== null && newest.length >= pageSize && !isComplete && (
        <div class="actions">
          <button type="button" onClick={() => void readOlder()}>
            Show older entries
          </button>
        </div>
      )}
    </>
  );
}

/** The newest entries, and all after the one that is known. */
async function readNewer(known: AuditEntry | undefined): Promise<readonly AuditEntry[]> {
  if (known === undefined) return readEntries(pageSize);
  const entries = await readEntries(fewEntries);
  return entries.every(({ id }) => id > known.id) ? readEntries(pageSize) : entries;
}

async function readEntries(limit: number, before?: number): Promise<readonly AuditEntry[]> {
  const query = before === undefined ? '' : `&before=${before}`;
  const { data } = await (await send('GET', `api/audit?per_page=${limit}${query}`)).json();
  return data;
}

/** New entries before those that are shown; the ids fall. */
function merge(fresh: readonly AuditEntry[], shown: readonly AuditEntry[]): readonly AuditEntry[] {
  const [last] = shown;
  return last === undefined ? fresh : [...fresh.filter(({ id }) => id > last.id), ...shown];
}
