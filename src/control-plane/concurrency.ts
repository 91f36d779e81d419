export type Semaphore = <Result>(task: () => Promise<Result>) => Promise<Result>;

/** At most `width` tasks run and `queue` tasks wait. Others fail with the error of `refuse`. */
export function createSemaphore(width: number, queue: number, refuse: () => Error): Semaphore {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (task) => {
    if (running < width) running += 1;
    else if (waiting.length >= queue) throw refuse();
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await task();
    } finally {
      // The slot passes directly to the next task: a newer task could take a free slot.
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
}

export type FairSemaphore = <Result>(key: string, task: () => Promise<Result>) => Promise<Result>;

interface FairSemaphoreOptions {
  readonly width: number;
  /** The maximum number of waiting tasks of all keys. */
  readonly queue: number;
  readonly groupOf: (key: string) => string;
  readonly refuse: () => Error;
}

/**
 * Serves the queues of its keys in turn: a full queue delays no other. If `queue` tasks wait, it
 * refuses the newest of the longest queue; on a tie, of the group with the most queues.
 */
export function createFairSemaphore({ width, queue, groupOf, refuse }: FairSemaphoreOptions): FairSemaphore {
  let running = 0;
  let waiting = 0;
  /** The first queue is the next to be served. */
  const queues = new Map<string, PromiseWithResolvers<void>[]>();
  /** The key whose newest task makes room for a new task; null if the new task must be refused. */
  const findEvicted = (key: string): string | null => {
    const own = queues.get(key)?.length ?? 0;
    const [longest, length] = [...queues].reduce<[string, number]>(
      (one, [other, tasks]) => (tasks.length > one[1] ? [other, tasks.length] : one),
      [key, own],
    );
    if (length > own + 1) return longest;
    if (own > 0) return null;
    const groups = Map.groupBy(queues.keys(), groupOf);
    const largest = [...groups.values()].reduce((one, other) => (other.length > one.length ? other : one), []);
    const ownGroup = groups.get(groupOf(key)) ?? [];
    return largest.length > ownGroup.length + 1 ? (largest.at(-1) ?? null) : null;
  };
  const wait = (key: string): Promise<void> => {
    const own = queues.get(key) ?? [];
    if (waiting >= queue) {
      const evicted = findEvicted(key);
      if (evicted === null) throw refuse();
      const tasks = queues.get(evicted) ?? [];
      tasks.pop()?.reject(refuse());
      if (tasks.length === 0) queues.delete(evicted);
      waiting -= 1;
    }
    const admitted = Promise.withResolvers<void>();
    own.push(admitted);
    queues.set(key, own);
    waiting += 1;
    return admitted.promise;
  };
  const admitNext = () => {
    const [next] = queues;
    if (next === undefined) {
      running -= 1;
      return;
    }
    const [key, tasks] = next;
    const admitted = tasks.shift();
    queues.delete(key);
    if (tasks.length > 0) queues.set(key, tasks);
    waiting -= 1;
    admitted?.resolve();
  };
  return async (key, task) => {
    if (running < width) running += 1;
    else await wait(key);
    try {
      return await task();
    } finally {
      admitNext();
    }
  };
}

/** Runs the tasks of one key sequentially. The queues of a key take turns. */
export type FairMutex = <Result>(key: string, queue: string, task: () => Promise<Result>) => Promise<Result>;

/** At most `most` tasks of a key wait in all its queues. Others fail with the error of `refuse`. */
export function createFairMutex(most: number, refuse: () => Error): FairMutex {
  const busy = new Map<string, { tasks: number; readonly take: FairSemaphore }>();
  return async (key, queue, task) => {
    const own = busy.get(key) ?? {
      tasks: 0,
      take: createFairSemaphore({ width: 1, queue: most, groupOf: (name) => name, refuse }),
    };
    busy.set(key, own);
    own.tasks += 1;
    try {
      return await own.take(queue, task);
    } finally {
      own.tasks -= 1;
      if (own.tasks === 0) busy.delete(key);
    }
  };
}

/** Runs tasks of one key sequentially, in order of arrival. */
export type KeyedMutex = <Result>(key: string, task: () => Promise<Result>) => Promise<Result>;

export function createKeyedMutex(): KeyedMutex {
  const last = new Map<string, Promise<unknown>>();
  return (key, task) => {
    const current = (last.get(key) ?? Promise.resolve()).then(task, task);
    last.set(key, current);
    const cleanUp = () => {
      if (last.get(key) === current) last.delete(key);
    };
    current.then(cleanUp, cleanUp);
    return current;
  };
}

/**
 * Runs `work` for one key at a time. It must not throw. A key that is added repeatedly before its
 * turn runs once. If `most` keys wait, new keys are dropped.
 */
export function createTurns<Key>(work: (key: Key) => Promise<void>, most = 10_000): (key: Key) => void {
  const waiting = new Set<Key>();
  let isRunning = false;
  const run = async () => {
    isRunning = true;
    for (const key of waiting) {
      waiting.delete(key);
      await work(key);
    }
    isRunning = false;
  };
  return (key) => {
    if (waiting.size < most) waiting.add(key);
    if (!isRunning) void run();
  };
}
