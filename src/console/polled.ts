import { useEffect, useRef, useState } from 'preact/hooks';
import { isOutage, isOutOfReach, readList } from './client.ts';

export interface Polled<Item> {
  /** Null before the first reply. */
  readonly items: readonly Item[] | null;
  readonly problem: string | null;
  /** Reads the list now, for example after a change. */
  refresh(): Promise<void>;
}

const intervalMs = 10_000;

/** Reads a list repeatedly while the page is visible, and when `version` changes. */
export function usePolled<Item>(path: string, version: unknown = null): Polled<Item> {
  const [items, setItems] = useState<readonly Item[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const latest = useRef(0);
  const isReading = useRef(false);
  const refresh = async () => {
    latest.current += 1;
    const turn = latest.current;
    isReading.current = true;
    try {
      const read = await readList<Item>(path);
      // A later request may already have been answered.
      if (turn !== latest.current) return;
      setItems(read);
      setProblem(null);
    } catch (error) {
      if (turn !== latest.current) return;
      if (isOutage(error)) isOutOfReach.value = true;
      else setProblem(error instanceof Error ? error.message : String(error));
    } finally {
      if (turn === latest.current) isReading.current = false;
    }
  };
  useEffect(() => {
    void refresh();
    const timer = setInterval(() => {
      // Skip the interval while a slow reply is pending.
      if (!document.hidden && !isReading.current) void refresh();
    }, intervalMs);
    return () => {
      latest.current += 1;
      clearInterval(timer);
    };
  }, [path, version]);
  return { items, problem, refresh };
}
