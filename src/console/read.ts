import { useEffect, useState } from 'preact/hooks';
import { ApiError, call } from './client.ts';

export interface PolledResource<Data> {
  /** Null before the first reply, and if the resource does not exist. */
  readonly data: Data | null;
  /** False before the first reply. */
  readonly isRead: boolean;
  readonly problem: string | null;
}

/** Reads again when `version` changes. `data` stays null if an earlier control plane lacks it. */
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

/** The value once it has not changed for a moment, so that typing sends no request for each key. */
export function useSettled<Value>(value: Value, ms = 300): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
