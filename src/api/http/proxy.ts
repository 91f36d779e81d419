import { isIPv6, type Socket } from 'node:net';
import { type buildConnector, Client } from 'undici';
import { ProxyFailed } from '../../core/errors/index.ts';
import type { HttpProxy } from '../../core/net/service-address.ts';
import { AttemptFailed } from './attempt-failed.ts';
import { proxyAt } from './tls-server.ts';

type SocketConnector = ReturnType<typeof buildConnector>;

/**
 * Connects to an https origin through a proxy: undici's CONNECT, with TLS to the origin inside.
 * undici's ProxyAgent hides the proxy's status, and {@link Connection} needs a Client that is bound
 * to the origin. A failure of the proxy is an {@link AttemptFailed}. Other failures concern the
 * origin, as without a proxy.
 *
 * @param dial connects to the proxy
 * @param secure negotiates TLS with the origin
 */
export function tunnel(
  proxy: HttpProxy,
  dial: SocketConnector,
  secure: SocketConnector,
  withinMs: number,
): SocketConnector {
  return (options, done) => {
    const { hostname, port } = options;
    const target = `${isIPv6(hostname) ? `[${hostname}]` : hostname}:${port || '443'}`;
    open(proxy, target, toProxy(proxy, dial), withinMs).then(
      (httpSocket) => secure({ ...options, httpSocket }, done),
      (error: Error) => done(error, null),
    );
  };
}

async function open(proxy: HttpProxy, target: string, connect: SocketConnector, withinMs: number) {
  const client = new Client(proxy.url, { connect, headersTimeout: withinMs });
  try {
    const { statusCode, socket } = await client.connect({
      path: target,
      headers: { host: target, ...authorize(proxy) },
    });
    if (statusCode >= 200 && statusCode < 300) return socket as Socket;
    socket.on('error', () => {}).destroy();
    throw refusal(statusCode, proxy, target);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof AttemptFailed || code === undefined) throw error;
    const isSlow = code === 'UND_ERR_HEADERS_TIMEOUT';
    throw failure(
      isSlow ? `did not reach ${target} within ${withinMs / 1000} s` : 'closed the connection',
      askOperator,
    );
  } finally {
    // A socket that became a tunnel no longer belongs to the client.
    void client.destroy();
  }
}

/** Connects to the proxy. Its certificate must match its URL, not the request's host. */
export function toProxy({ url }: HttpProxy, dial: SocketConnector): SocketConnector {
  const server = url.startsWith('https:') ? proxyAt(url) : undefined;
  return (options, done) =>
    dial({ ...options, servername: '' }, (...[error, socket]) => {
      if (socket) return done(null, socket);
      const { message, outcome } = AttemptFailed.from(error, true, server);
      done(failure(`is unreachable: ${message}`, outcome.remedy ?? checkProxy), null);
    });
}

interface Addressed {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Sends requests for a plain http origin to a proxy (RFC 9112, section 3.2.2). */
export interface ProxyForwarding {
  readonly proxy: string;
  rewrite<Message extends Addressed>(message: Message): Message;
}

export function forwardBy(proxy: HttpProxy, origin: string): ProxyForwarding {
  const { host } = new URL(origin);
  return {
    proxy: proxy.url,
    rewrite: (message) => ({
      ...message,
      path: `${origin}${message.path}`,
      headers: { ...message.headers, host, ...authorize(proxy) },
    }),
  };
}

/** The failure for a proxy's status in place of a connection. */
export function refusal(status: number, { credentials, url }: HttpProxy, target: string): AttemptFailed {
  // tinyproxy replies 401 to a wrong password.
  if (status === 407 || (status === 401 && credentials !== null)) {
    const [problem, verb] =
      credentials === null
        ? ['requires a user and a password', 'write']
        : ['does not accept its user and password', 'correct'];
    const remedy = `${verb} ${url.replace('//', '//USER:PASSWORD@')} in a file, and give it as --proxy file:PATH`;
    return failure(`${problem} (${status})`, remedy);
  }
  if (status < 500) return failure(`does not allow connections to ${target} (${status})`, `${askOperator} to allow it`);
  return failure(
    `cannot connect to ${target} (${status})`,
    'check the URL of the control plane; the log of the proxy has the reason',
  );
}

const askOperator = 'ask its operator';
const checkProxy = 'check its URL; --proxy names another one, and --proxy none connects directly';

/** Not retried within a call: a user waits, and the daemon has its own backoff. */
function failure(problem: string, remedy: string): AttemptFailed {
  return new AttemptFailed(problem, {
    retry: false,
    sent: false,
    perhapsDone: false,
    heard: false,
    proxied: true,
    remedy,
  });
}

/** The error of a call whose proxy failed. */
export function describeProxyFailure(
  url: string,
  proxy: HttpProxy,
  problem: string,
  { remedy = checkProxy }: AttemptFailed['outcome'],
): ProxyFailed {
  return new ProxyFailed(url, proxy.url, proxy.from, problem, remedy);
}

function authorize({ credentials }: HttpProxy): Readonly<Record<string, string>> {
  if (credentials === null) return {};
  return { 'proxy-authorization': `Basic ${Buffer.from(credentials.reveal()).toString('base64')}` };
}
