/** Runs a piece of work when its turn comes, and gives what it gives. */
export type Gate = <Result>(work: () => Promise<Result>) => Promise<Result>;

/** Lets at most `width` pieces of work run at once; `refuse` makes the error for one that finds `queue` others waiting. */
export function createGate(width: number, queue: number, refuse: () => Error): Gate {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (running < width) running += 1;
    else if (waiting.length >= queue) throw refuse();
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      // Handing the place on, rather than freeing it, keeps a newcomer from slipping in between.
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
}

/** Runs a piece of work for the caller that the key names when its turn comes, and gives what it gives. */
export type FairGate = <Result>(key: string, work: () => Promise<Result>) => Promise<Result>;

/**
 * Like {@link createGate}, with a queue for each key: the queues take turns, so that a full one delays no other. Of a gate with `queue`
 * waiting, the newest of the longest queue is refused.
 */
export function createFairGate(width: number, queue: number, refuse: () => Error): FairGate {
  let running = 0;
  let waiting = 0;
  /** In the order of their turns. */
  const queues = new Map<string, PromiseWithResolvers<void>[]>();
  const wait = (key: string): Promise<void> => {
    const own = queues.get(key) ?? [];
    if (waiting >= queue) {
      const longest = [...queues.values()].reduce((one, other) => (other.length > one.length ? other : one), own);
      if (own.length + 1 >= longest.length) throw refuse();
      longest.pop()?.reject(refuse());
      waiting -= 1;
    }
    const place = Promise.withResolvers<void>();
    own.push(place);
    queues.set(key, own);
    waiting += 1;
    return place.promise;
  };
  const admitNext = () => {
    const [next] = queues;
    if (next === undefined) {
      running -= 1;
      return;
    }
    const [key, places] = next;
    const place = places.shift();
    queues.delete(key);
    if (places.length > 0) queues.set(key, places);
    waiting -= 1;
    place?.resolve();
  };
  return async (key, work) => {
    if (running < width) running += 1;
    else await wait(key);
    try {
      return await work();
    } finally {
      admitNext();
    }
  };
}

/** Lets pieces of work with the same key run one after another, in order of arrival. */
export function createTurns(): <Result>(key: string, work: () => Promise<Result>) => Promise<Result> {
  const last = new Map<string, Promise<unknown>>();
  return (key, work) => {
    const mine = (last.get(key) ?? Promise.resolve()).then(work, work);
    last.set(key, mine);
    const forget = () => {
      if (last.get(key) === mine) last.delete(key);
    };
    mine.then(forget, forget);
    return mine;
  };
}
