import { useEffect, useState } from 'preact/hooks';
import { ApiError, call } from './client.ts';

/** A resource in the state of its last read. */
export interface PolledResource<Data> {
  /** Null before the first reply, and if the resource does not exist. */
  readonly data: Data | null;
  /** False before the first reply. */
  readonly isRead: boolean;
  readonly problem: string | null;
}

/**
 * Reads a resource, and again when `version` changes. A control plane of an earlier version may not
 * have it: then `data` is null.
 */
export function useReading<Data>(path: string, version: unknown): PolledResource<Data> {
  const [reading, setReading] = useState<PolledResource<Data>>({ data: null, isRead: false, problem: null });
  useEffect(() => {
    let isOver = false;
    call<Data>('GET', path).then(
      (data) => {
        if (!isOver) setReading({ data, isRead: true, problem: null });
      },
      (error: unknown) => {
        const isAbsent = error instanceof ApiError && error.status === 404;
        const problem = isAbsent ? null : error instanceof Error ? error.message : String(error);
        if (!isOver) setReading(({ data }) => ({ data: isAbsent ? null : data, isRead: true, problem }));
      },
    );
    return () => {
      isOver = true;
    };
  }, [path, version]);
  return reading;
}
