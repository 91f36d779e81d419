import type { Foreignness } from '../../core/errors/index.ts';
import { describeClosedHandshake, describeTlsFailure, type TlsServer } from '../../core/tls/describe-failure.ts';
import { codeOf, isLateAlert, isTlsCode } from '../../core/tls/failure-code.ts';

export interface AttemptOutcome {
  /** True if another attempt may succeed. */
  readonly retry: boolean;
  /** True if at least one byte of the request may have left this host. */
  readonly sent: boolean;
  /** True if the request may have been executed. */
  readonly perhapsDone: boolean;
  /** True if something replied at the address: a status, a reset, or bytes that are not HTTP. */
  readonly heard: boolean;
  /** The reply was 429: the path is open, but the rate limit is exceeded. */
  readonly limited?: boolean;
  /** The reply was 503 with a reason, which is the problem. */
  readonly busy?: boolean;
  /** Another server replied in place of the control plane. */
  readonly intercepted?: boolean;
  /** The proxy failed. The problem is a clause with the proxy as its subject. */
  readonly proxied?: boolean;
  /** Another user may be listening at the address. */
  readonly foreign?: Foreignness;
  /** The status of the reply; absent without a reply. */
  readonly status?: number;
  /** The connection ended after the request was sent and before the whole reply arrived. */
  readonly closed?: boolean;
  /** The clamped value of `Retry-After`. */
  readonly retryAfterMs?: number | null;
  /** The hint, unless the problem contains one. */
  readonly remedy?: string;
}

/**
 * A failed attempt: the call retries or ends with Unreachable. It has only our own text and no
 * cause: undici's errors contain what they read, such as a reply's bytes in HTTPParserError.
 */
export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed';
  readonly outcome: AttemptOutcome;

  constructor(problem: string, outcome: AttemptOutcome) {
    super(problem);
    this.outcome = outcome;
  }

  /**
   * Converts an error of undici, the resolver, TCP or TLS into our own text.
   *
   * @param server the server of a TLS connection; null for plain http, where no reply began
   */
  static from(error: unknown, unconnected: boolean, server: TlsServer | null | undefined = undefined): AttemptFailed {
    const code = codeOf(error);
    const isPlain = server === null;
    if (server && ((unconnected && isTlsCode(code)) || isLateAlert(error))) {
      const intercepted = code === 'ERR_TLS_CERT_ALTNAME_INVALID';
      const { problem, remedy } = describeTlsFailure(error, server, Date.now());
      const rest = { retry: false, sent: !unconnected, perhapsDone: false, heard: !intercepted };
      return new AttemptFailed(problem, { ...rest, intercepted, remedy });
    }
    if (server && unconnected && code === 'ECONNRESET') {
      const { problem, remedy } = describeClosedHandshake(server);
      return new AttemptFailed(problem, { retry: true, sent: false, perhapsDone: false, heard: true, remedy });
    }
    const isNotHttp =
      (error instanceof Error && error.name === 'HTTPParserError') || code === 'UND_ERR_HEADERS_OVERFLOW';
    if (!unconnected && isNotHttp) {
      return new AttemptFailed('the reply is not HTTP', {
        retry: false,
        sent: true,
        perhapsDone: false,
        heard: true,
        remedy: isPlain ? useHttps : 'check that its address and port are those of the control plane',
      });
    }
    const problem = problems[code] ?? `the connection failed (${code})`;
    // A TLS server closes connections with plain http. So does "ssh -L" without a server behind it.
    const isClosed = !unconnected && closedCodes.includes(code);
    return new AttemptFailed(problem, {
      retry: code !== 'EACCES',
      sent: !unconnected,
      perhapsDone: !unconnected,
      heard: code === 'ECONNREFUSED' || code === 'ECONNRESET',
      closed: isClosed,
      remedy:
        (isPlain && isClosed ? checkBehind : remedies[code]) ?? 'try again, and check this host with "cpn doctor"',
    });
  }
}

const problems: Readonly<Record<string, string>> = {
  ENOENT: 'the socket does not exist (ENOENT)',
  EACCES: 'this user may not connect (EACCES)',
  ECONNREFUSED: 'the connection was refused (ECONNREFUSED)',
  ECONNRESET: 'the connection was reset before the whole reply came (ECONNRESET)',
  UND_ERR_SOCKET: 'the connection was closed before the whole reply came',
  ENOTFOUND: 'its name does not resolve (ENOTFOUND)',
  EAI_AGAIN: 'the resolver does not answer (EAI_AGAIN)',
  EHOSTUNREACH: 'there is no route to the host (EHOSTUNREACH)',
  ENETUNREACH: 'its network is unreachable (ENETUNREACH)',
  ETIMEDOUT: 'the connection timed out (ETIMEDOUT)',
  UND_ERR_CONNECT_TIMEOUT: 'no connection within 10 seconds',
};

const closedCodes: readonly string[] = ['ECONNRESET', 'UND_ERR_SOCKET'];
/** For a port that was tried with plain http and may serve https. */
export const useHttps = 'check the port, or set --api to an https:// URL';
/** For a connection with plain http that was closed without a byte. */
const checkBehind =
  'check that the control plane runs, and where a forwarded port or a proxy leads; if the port serves https, set --api to an https:// URL';
/** For a port that was tried with https and may serve plain http. */
export const useHttp = 'check the port, or set --api to an http:// URL';

const noWay = 'check its address, and check the routes of this host with "cpn doctor"';
const silent = 'check its address and port, that it runs, and that no firewall is in between';

const remedies: Readonly<Record<string, string>> = {
  ENOENT: 'check the path, and that it runs',
  EACCES: 'if it is a Unix socket, check its mode and those of its folders',
  ECONNREFUSED: 'check its address and port, and that it runs',
  ECONNRESET: 'try again, and check its log and any proxy in front of it',
  ENOTFOUND: 'check its spelling, and check the resolvers of this host with "cpn doctor"',
  EAI_AGAIN: 'check the resolvers of this host with "cpn doctor"',
  EHOSTUNREACH: noWay,
  ENETUNREACH: noWay,
  ETIMEDOUT: silent,
  UND_ERR_CONNECT_TIMEOUT: silent,
};
