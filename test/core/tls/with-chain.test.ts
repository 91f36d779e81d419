import { describe, expect, it } from 'vitest';
import { UnacceptedCertificate, withChain, withOtherTrust } from '../../../src/core/tls/with-chain.ts';

const failure = (code: string) => Object.assign(new Error(code), { code });
const unknownIssuer = failure('UNABLE_TO_GET_ISSUER_CERT_LOCALLY');
const expired = failure('CERT_HAS_EXPIRED');
const refused = failure('ECONNREFUSED');

class Connection {
  isClosed = false;
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
  destroy(): void {
    this.isClosed = true;
  }
  getPeerCertificate(): object {
    return {};
  }
}
type Outcome = Error | Connection;
type Done = (...result: [error: Error, socket: null] | [error: null, socket: Connection]) => void;

/** A connector with these outcomes, one after another; counts its calls. */
function connector(...outcomes: Outcome[]) {
  const left = [...outcomes];
  const connect = (_: string, done: Done) => {
    connect.calls += 1;
    const outcome = left.shift();
    if (outcome === undefined) throw new Error('connected once too often');
    if (outcome instanceof Error) done(outcome, null);
    else done(null, outcome);
  };
  connect.calls = 0;
  return connect;
}

function result(connect: (options: string, done: Done) => void): Outcome {
  let found: Outcome | undefined;
  connect('', (...[error, socket]) => {
    expect(found).toBeUndefined();
    found = error ?? socket ?? undefined;
  });
  return found ?? expect.unreachable();
}

describe('a connector with another trust', () => {
  it('uses it after an unknown issuer alone', () => {
    const socket = new Connection('other');
    const other = connector(socket, socket);
    expect(result(withOtherTrust(connector(unknownIssuer), other))).toBe(socket);
    for (const error of [expired, refused]) expect(result(withOtherTrust(connector(error), other))).toBe(error);
    expect(other.calls).toBe(1);
    const first = new Connection('first');
    expect(result(withOtherTrust(connector(first), other))).toBe(first);
    expect(other.calls).toBe(1);
  });
});

describe('a connector whose errors have the certificates', () => {
  const inspected = () => new Connection('inspected');
  const run = (outcomes: Outcome[], inspect: Outcome[], mayTrust = false) => {
    const [connect, look] = [connector(...outcomes), connector(...inspect)];
    let asked = 0;
    const found = result(
      withChain(connect, look, () => () => {
        asked += 1;
        return mayTrust;
      }),
    );
    return { found, calls: [connect.calls, look.calls, asked] };
  };

  it('returns verified connections only, without a second one', () => {
    const socket = new Connection('verified');
    expect(run([socket], [])).toEqual({ found: socket, calls: [1, 0, 0] });
  });

  it('reads the certificates after a rejected one over a second connection, and closes that', () => {
    const second = inspected();
    const { found, calls } = run([expired], [second]);
    expect(found).toBeInstanceOf(UnacceptedCertificate);
    expect(found).toMatchObject({ code: 'CERT_HAS_EXPIRED', message: 'CERT_HAS_EXPIRED', chain: [] });
    expect([second.isClosed, calls]).toEqual([true, [1, 1, 0]]);
  });

  it('keeps the first error if the second connection fails', () => {
    expect(run([expired], [refused]).found).toMatchObject({ name: 'UnacceptedCertificate', code: 'CERT_HAS_EXPIRED' });
  });

  it('makes no second connection after another failure', () => {
    expect(run([refused], [])).toEqual({ found: refused, calls: [1, 0, 0] });
    const handshake = failure('EPROTO');
    expect(run([handshake], [])).toEqual({ found: handshake, calls: [1, 0, 0] });
  });

  it('retries once after an unknown issuer, if more issuers are trusted now', () => {
    const socket = new Connection('verified');
    expect(run([unknownIssuer, socket], [], true)).toEqual({ found: socket, calls: [2, 0, 1] });
    expect(run([unknownIssuer, unknownIssuer], [inspected()], true).calls).toEqual([2, 1, 1]);
    expect(run([unknownIssuer], [inspected()]).calls).toEqual([1, 1, 1]);
    expect(run([expired], [inspected()], true).calls).toEqual([1, 1, 0]);
  });
});
