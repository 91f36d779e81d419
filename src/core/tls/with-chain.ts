import { type Certificate, readSentChain, type SentCertificate } from './certificate.ts';
import { codeOf, isCertificateCode, isUnknownIssuer } from './failure-code.ts';

/** The certificate of the server was not accepted. It has the code and the message of Node's error. */
export class UnacceptedCertificate extends Error {
  override readonly name = 'UnacceptedCertificate';
  readonly code: string;
  /** The certificate and its issuers; empty where they could not be read. */
  readonly chain: readonly Certificate[];

  constructor(error: Error, chain: readonly Certificate[]) {
    super(error.message);
    this.code = codeOf(error);
    this.chain = chain;
  }
}

type Done<Socket> = (...result: [error: Error, socket: null] | [error: null, socket: Socket]) => void;
type SocketConnector<Options, Socket> = (options: Options, done: Done<Socket>) => void;

interface Closable {
  destroy(): unknown;
  getPeerCertificate?(detailed: true): SentCertificate;
}

/**
 * A connector that connects in another way where an issuer is unknown.
 *
 * @param other trusts other issuers
 */
export function withOtherTrust<Options, Socket>(
  connect: SocketConnector<Options, Socket>,
  other: SocketConnector<Options, Socket>,
): SocketConnector<Options, Socket> {
  return (options, done) =>
    connect(options, (...[error, socket]) => {
      if (error === null) done(null, socket);
      else if (isUnknownIssuer(codeOf(error))) other(options, done);
      else done(error, null);
    });
}

/**
 * A connector whose errors have the certificates that were not accepted, as {@link UnacceptedCertificate}. Node closes such a
 * connection before they can be read, so they come from a second one, over which nothing is sent.
 *
 * @param connect verifies the certificate; its connections are the only ones that are returned
 * @param inspect connects in the same way and verifies nothing
 * @param noteTrust is called as a connection begins. Its function trusts more issuers after one was unknown; if it returns true, more are
 * trusted than when the connection began, and the connector connects once more
 */
export function withChain<Options, Socket extends Closable>(
  connect: SocketConnector<Options, Socket>,
  inspect: SocketConnector<Options, Socket>,
  noteTrust: () => () => boolean,
): SocketConnector<Options, Socket> {
  const connectTrusting: typeof connect = (options, done) => {
    const trustMore = noteTrust();
    connect(options, (...[error, socket]) => {
      if (error === null) done(null, socket);
      else if (isUnknownIssuer(codeOf(error)) && trustMore()) connect(options, done);
      else done(error, null);
    });
  };
  return (options, done) =>
    connectTrusting(options, (...[error, socket]) => {
      if (error === null) return done(null, socket);
      if (!isCertificateCode(codeOf(error))) return done(error, null);
      inspect(options, (...[failure, inspected]) => {
        const chain = failure === null ? readSentChain(inspected.getPeerCertificate?.(true) ?? {}) : [];
        inspected?.destroy();
        done(new UnacceptedCertificate(error, chain), null);
      });
    });
}
