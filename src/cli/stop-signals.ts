import { once } from 'node:events';

/** Returns when somebody asks the program to end. From then on a second signal ends it at once, as it usually does. */
export async function untilStopped(): Promise<void> {
  const heard = new AbortController();
  const { signal } = heard;
  await Promise.race([once(process, 'SIGTERM', { signal }), once(process, 'SIGINT', { signal })]);
  heard.abort();
}
