import type { PeerCertificate } from 'node:tls';
import type { ForeignUsers } from '../../core/errors/index.ts';
import { sanitizeForMessage } from './sanitize-for-message.ts';

/** What an attempt that brought no answer leaves known about itself. */
interface Outcome {
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
  /** A program of another user than before listens there; the two users for a message. */
  readonly foreign?: ForeignUsers;
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
  readonly outcome: Outcome;

  constructor(problem: string, outcome: Outcome) {
    super(problem);
    this.outcome = outcome;
  }

  /**
   * Puts an error of undici, of the resolver, of TCP or of TLS into our words.
   *
   * @param isPlain plain http was tried, and no reply began
   */
  static from(error: unknown, unconnected: boolean, isPlain = false): AttemptFailed {
    const code = codeOf(error);
    if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
      return new AttemptFailed(`its certificate is for ${nameIn(error)}`, {
        retry: false,
        sent: !unconnected,
        perhapsDone: false,
        heard: false,
        intercepted: true,
      });
    }
    if (unconnected && !networkCode.test(code)) {
      return new AttemptFailed(`${tlsProblem(code)}; nothing was sent`, {
        retry: false,
        sent: false,
        perhapsDone: false,
        heard: true,
      });
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
    // A TLS server closes the connection of a client that speaks plain http.
    const isTlsLikely = isPlain && !unconnected && closedCodes.includes(code);
    return new AttemptFailed(isTlsLikely ? `${problem}: http was tried, and the port may serve https` : problem, {
      retry: true,
      sent: !unconnected,
      perhapsDone: !unconnected,
      heard: code === 'ECONNREFUSED' || code === 'ECONNRESET',
      remedy: (isTlsLikely ? useHttps : remedies[code]) ?? 'try again, and see what "cpn doctor" says of this host',
    });
  }
}

/** How a failed system call, the resolver and undici name their errors; OpenSSL's names look otherwise, but for EPROTO. */
const networkCode = /^(?!EPROTO$)(E[A-Z0-9]+|EAI_[A-Z]+|UND_ERR_[A-Z_]+|ABORT_ERR)$/;

const problems: Readonly<Record<string, string>> = {
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

const noWay = 'check its address, and with "cpn doctor" the routes of this host';
const silent = 'check its address and port, that it runs, and that no firewall is in between';

const remedies: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'check its address and port, and that it runs',
  ECONNRESET: 'try again, and see its log and what stands in front of it',
  ENOTFOUND: 'check how it is written, and with "cpn doctor" the resolvers of this host',
  EAI_AGAIN: 'see what "cpn doctor" says of the resolvers of this host',
  EHOSTUNREACH: noWay,
  ENETUNREACH: noWay,
  ETIMEDOUT: silent,
  UND_ERR_CONNECT_TIMEOUT: silent,
};

function tlsProblem(code: string): string {
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_')) {
    return `the TLS handshake failed (${code}): https was tried, and the port may serve plain http; check the port, or set --api to an http:// URL`;
  }
  const remedy = "check this host's clock, or name the issuer's certificate in NODE_EXTRA_CA_CERTS";
  return `its TLS certificate was not accepted (${code}): ${remedy}`;
}

/** The first name of a trusted certificate that is for another host. */
function nameIn(error: unknown): string {
  const { subjectaltname, subject } = (error as { cert?: Partial<PeerCertificate> }).cert ?? {};
  const name = subjectaltname?.split(', ')[0]?.replace(/^[A-Za-z ]+:/, '') ?? subject?.CN;
  return typeof name === 'string' && name !== '' ? sanitizeForMessage(name, [], 100) : 'another name';
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[A-Z0-9_]{1,64}$/.test(code) ? code : 'unknown';
}
