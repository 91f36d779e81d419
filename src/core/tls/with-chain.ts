import { type Certificate, readSentChain, type SentCertificate } from './certificate.ts';
import { codeOf, isCertificateCode, isUnknownIssuer } from './failure-code.ts';

/** The server's certificate was rejected. Has the code and the message of Node's error. */
export class UnacceptedCertificate extends Error {
  override readonly name = 'UnacceptedCertificate';
  readonly code: string;
  /** The certificate and its issuers. Empty if they could not be read. */
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

/** Retries with `other`, which trusts other issuers, after an unknown issuer. */
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
 * A connector whose errors contain the rejected certificates, as {@link UnacceptedCertificate}.
 * Node closes such a connection before the certificates can be read. They therefore come from a
 * second connection, over which nothing is sent.
 *
 * @param connect verifies the certificate; only its connections are returned
 * @param inspect connects in the same way without verification
 * @param noteTrust called at the start of a connection, and its function after an unknown issuer:
 * if that returns true, more issuers are trusted now, and the connector retries once
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
