/** Does `work` until SIGINT, SIGTERM or a closed stdout aborts its signal; what it throws then is no failure. */
export async function untilInterrupted(work: (ended: AbortSignal) => Promise<void>): Promise<void> {
  const ended = new AbortController();
  const end = () => ended.abort();
  process.once('SIGINT', end).once('SIGTERM', end);
  // A reader that left, such as `head`, wants no more.
  process.stdout.on('error', end);
  try {
    await work(ended.signal);
  } catch (error) {
    if (!ended.signal.aborted) throw error;
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end);
  }
}
