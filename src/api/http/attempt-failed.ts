import type { Foreignness } from '../../core/errors/index.ts';
import { describeClosedHandshake, describeTlsFailure, type TlsServer } from '../../core/tls/describe-failure.ts';
import { codeOf, isLateAlert, isTlsCode } from '../../core/tls/failure-code.ts';

/** What an attempt that brought no answer leaves known about itself. */
export interface AttemptOutcome {
  /** Whether another attempt could end otherwise. */
  readonly retry: boolean;
  /** No byte of the request left this host. */
  readonly sent: boolean;
  /** Whether the service may have carried the request out. */
  readonly perhapsDone: boolean;
  /** Something at its address answered: with a status, a reset, or bytes that are no HTTP. */
  readonly heard: boolean;
  /** It answered 429: the way there is open, and the request is one too many. */
  readonly limited?: boolean;
  /** It answered 503 and said why, which is the problem. */
  readonly busy?: boolean;
  /** Another server answered in place of the control plane. */
  readonly intercepted?: boolean;
  /** The proxy failed, and the problem is a clause of which it is the subject. */
  readonly proxied?: boolean;
  /** Another user may answer there. */
  readonly foreign?: Foreignness;
  /** The status of the reply; absent without one. */
  readonly status?: number;
  /** The connection ended after the request was sent, and before the whole reply came. */
  readonly closed?: boolean;
  /** What `Retry-After` asked for, clamped. */
  readonly retryAfterMs?: number | null;
  /** The hint, unless the problem has one. */
  readonly remedy?: string;
}

/**
 * One attempt brought no answer. Never leaves this folder: the call either tries again or ends in an Unreachable. It holds words
 * of ours only and no cause, because undici's errors carry what they were reading: HTTPParserError the reply's bytes.
 */
export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed';
  readonly outcome: AttemptOutcome;

  constructor(problem: string, outcome: AttemptOutcome) {
    super(problem);
    this.outcome = outcome;
  }

  /**
   * Puts an error of undici, of the resolver, of TCP or of TLS into our words.
   *
   * @param server the server of a connection by TLS; null for plain http, where no reply began
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
      return new AttemptFailed('what answers there does not speak HTTP', {
        retry: false,
        sent: true,
        perhapsDone: false,
        heard: true,
        remedy: isPlain ? useHttps : 'check that its address and port are those of the control plane',
      });
    }
    const problem = problems[code] ?? `the connection failed (${code})`;
    // A TLS server closes the connection of a client that speaks plain http, and so does "ssh -L" without a server behind it.
    const isClosed = !unconnected && closedCodes.includes(code);
    return new AttemptFailed(problem, {
      retry: code !== 'EACCES',
      sent: !unconnected,
      perhapsDone: !unconnected,
      heard: code === 'ECONNREFUSED' || code === 'ECONNRESET',
      closed: isClosed,
      remedy:
        (isPlain && isClosed ? checkBehind : remedies[code]) ??
        'try again, and see what "cpn doctor" says of this host',
    });
  }
}

const problems: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such socket (ENOENT)',
  EACCES: 'this user may not connect (EACCES)',
  ECONNREFUSED: 'the connection was refused (ECONNREFUSED)',
  ECONNRESET: 'the connection was reset before the whole reply came (ECONNRESET)',
  UND_ERR_SOCKET: 'the connection was closed before the whole reply came',
  ENOTFOUND: 'its name does not resolve (ENOTFOUND)',
  EAI_AGAIN: 'the resolver does not answer (EAI_AGAIN)',
  EHOSTUNREACH: 'there is no way to the host (EHOSTUNREACH)',
  ENETUNREACH: 'there is no way to its network (ENETUNREACH)',
  ETIMEDOUT: 'the connection timed out (ETIMEDOUT)',
  UND_ERR_CONNECT_TIMEOUT: 'no connection came about in 10 seconds',
};

const closedCodes: readonly string[] = ['ECONNRESET', 'UND_ERR_SOCKET'];
/** For a port that was tried with plain http, and may serve https. */
export const useHttps = 'check the port, or set --api to an https:// URL';
/** For a connection by plain http that was closed without a byte. */
const checkBehind =
  'check that the control plane runs, also where a forwarded port or a proxy leads; if the port serves https, set --api to an https:// URL';
/** For the reverse. */
export const useHttp = 'check the port, or set --api to an http:// URL';

const noWay = 'check its address, and with "cpn doctor" the routes of this host';
const silent = 'check its address and port, that it runs, and that no firewall is in between';

const remedies: Readonly<Record<string, string>> = {
  ENOENT: 'check the path, and that it runs',
  EACCES: 'if it is a Unix socket, check its mode and those of its folders',
  ECONNREFUSED: 'check its address and port, and that it runs',
  ECONNRESET: 'try again, and see its log and what stands in front of it',
  ENOTFOUND: 'check how it is written, and with "cpn doctor" the resolvers of this host',
  EAI_AGAIN: 'see what "cpn doctor" says of the resolvers of this host',
  EHOSTUNREACH: noWay,
  ENETUNREACH: noWay,
  ETIMEDOUT: silent,
  UND_ERR_CONNECT_TIMEOUT: silent,
};
