import { Unreachable } from '../core/errors.ts';
import type { ServiceAddress } from '../core/model.ts';
import { parseServiceAddress } from '../core/service-address.ts';
import { AttemptFailed } from './attempt-failed.ts';
import { discard, header } from './body.ts';
import { Connection } from './connection.ts';
import type { ServiceLook } from './service.ts';

/**
 * Asks once whether something answers at a control plane's address, and what time it is there: any answer will do, and nothing secret
 * is sent.
 *
 * @throws Unreachable when nothing answers within `deadlineMs`, or its certificate is not trusted
 */
export async function lookAtService({ url, insecureHttp }: ServiceAddress, deadlineMs: number): Promise<ServiceLook> {
  const base = new URL(parseServiceAddress(url, insecureHttp).url);
  const end = new AbortController();
  const timer = setTimeout(() => end.abort(), deadlineMs);
  const connection = new Connection(base.origin, end.signal);
  // The end of the signal alone ends a connection that is being made; one that is made is closed.
  end.signal.addEventListener('abort', () => connection.close());
  const begun = performance.now();
  try {
    const headers = { accept: 'application/json', 'user-agent': 'cpn' };
    const response = await connection.send({ method: 'GET', path: base.pathname, headers, body: null });
    discard(response);
    const date = Date.parse(header(response, 'date') ?? '');
    return { date: Number.isNaN(date) ? null : date / 1000, tookMs: performance.now() - begun };
  } catch (error) {
    if (!(error instanceof AttemptFailed)) throw error;
    const problem = end.signal.aborted ? `no answer came within ${deadlineMs / 1000} s` : error.message;
    const { sent, heard, remedy = null } = error.outcome;
    throw new Unreachable(url, problem, { delivered: sent, heard, retryAfterMs: null, remedy });
  } finally {
    clearTimeout(timer);
    connection.close();
  }
}
