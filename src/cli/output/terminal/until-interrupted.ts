/** Runs `work` until SIGINT, SIGTERM or a closed stdout aborts its signal. Then ignores errors. */
export async function untilInterrupted(work: (ended: AbortSignal) => Promise<void>): Promise<void> {
  const ended = new AbortController();
  const end = () => ended.abort();
  process.once('SIGINT', end).once('SIGTERM', end);
  // A closed pipe, such as of `head`, ends the work.
  process.stdout.on('error', end);
  try {
    await work(ended.signal);
  } catch (error) {
    if (!ended.signal.aborted) throw error;
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end);
  }
}
