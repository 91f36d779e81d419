import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { RemovalStatus } from '../../contract/removal.ts';
import { call } from '../client.ts';
import { describeDeletion } from '../logic/peers/describe-removal.ts';

const intervalMs = 5000;

interface DeletionProps {
  readonly id: number;
  readonly onDeleted: () => void;
}

/** Hosts of a deleted network whose tunnels may be up. Shows nothing for an existing network. */
export function Deletion({ id, onDeleted }: DeletionProps): JSX.Element | null {
  const [status, setStatus] = useState<RemovalStatus | null>(null);
  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      // The frame shows connection problems.
      const found = await call<RemovalStatus>('GET', `api/networks/${id}/removals`).catch(() => null);
      if (isOver) return;
      setStatus(found);
      if (found?.deleted_at !== undefined) onDeleted();
      if (found?.deleted_at !== undefined && found.pending.length > 0) timer = setTimeout(read, intervalMs);
    };
    void read();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [id]);
  if (status?.deleted_at === undefined) return null;
  return (
    <div role="status">
      {describeDeletion(status).map((line) => (
        <p key={line}>{line}</p>
      ))}
    </div>
  );
}
