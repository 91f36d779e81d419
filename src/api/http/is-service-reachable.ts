import { ForeignListener, Intercepted, Unreachable } from '../../core/errors/index.ts';
import type { Resolved } from '../../core/names/resolved-names.ts';
import { baseOf, type ServiceAddress } from '../../core/net/service-address.ts';
import type { ServiceProbe } from '../service.ts';
import { userAgent } from './attempt.ts';
import { AttemptFailed } from './attempt-failed.ts';
import { discard, header } from './body.ts';
import { Connection } from './connection.ts';
import { describeUser } from './listener-check.ts';
import { describeProxyFailure } from './proxy.ts';
import { targetOf } from './target.ts';

/**
 * Checks once whether a service answers at a control plane's address, and reads its clock. Any
 * reply counts, and the request contains no secret.
 *
 * @param resolved the addresses of names, for when the resolver fails
 * @throws Unreachable if nothing answers within `deadlineMs`, or if the certificate is not trusted
 */
export async function probeService(
  address: ServiceAddress,
  deadlineMs: number,
  resolved: Resolved = {},
): Promise<ServiceProbe> {
  const { url } = address;
  const base = baseOf(address);
  const target = targetOf(address, base);
  const { proxy } = target;
  const end = new AbortController();
  const timer = setTimeout(() => end.abort(), deadlineMs);
  const connection = new Connection(target, resolved);
  // abort() ends only a connection attempt, close() an established connection.
  end.signal.addEventListener('abort', () => {
    connection.abort();
    connection.close();
  });
  const begun = performance.now();
  try {
    const headers = { accept: 'application/json', 'user-agent': userAgent };
    const response = await connection.send({ method: 'GET', path: base.pathname, headers, body: null });
    const { certificates } = connection;
    discard(response);
    const date = Date.parse(header(response, 'date') ?? '');
    const listener = connection.listener === null ? null : describeUser(connection.listener);
    const tookMs = performance.now() - begun;
    return {
      date: Number.isNaN(date) ? null : date / 1000,
      tookMs,
      ...(certificates.length > 0 && { certificates }),
      ...(target.check !== null && { listener }),
    };
  } catch (error) {
    if (!(error instanceof AttemptFailed)) throw error;
    const problem = end.signal.aborted ? `no answer came within ${deadlineMs / 1000} s` : error.message;
    const { sent, heard, intercepted, foreign, remedy = null } = error.outcome;
    if (error.outcome.proxied && proxy !== null) throw describeProxyFailure(url, proxy, problem, error.outcome);
    if (foreign) throw new ForeignListener(url, foreign);
    if (intercepted) throw new Intercepted(url, problem, sent, remedy);
    throw new Unreachable(url, problem, { delivered: sent, heard, retryAfterMs: null, remedy });
  } finally {
    clearTimeout(timer);
    connection.close();
  }
}
