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
