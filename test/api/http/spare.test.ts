import { describe, expect, onTestFinished, test } from 'vitest';
import { Connection, Spare } from '../../../src/api/http/connection.ts';
import { type ConnectionTarget, isSameTarget, targetOf } from '../../../src/api/http/target.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { serve } from '../server.ts';

const proxy = { url: 'http://proxy.example.net:3128', credentials: new Secret('user:pw'), from: '--proxy' };
const target: ConnectionTarget = {
  ...{ origin: 'https://cp.example.net', proxy, socketPath: '/run/cpn.sock', check: { expected: 7 } },
  authorities: ['one', 'two'],
};

/** A target that differs in one thing. */
const others: [string, Partial<ConnectionTarget>][] = [
  ['another origin', { origin: 'https://cp.example.net:8443' }],
  ['the origin without TLS', { origin: 'http://cp.example.net' }],
  ['no proxy', { proxy: null }],
  ['another proxy', { proxy: { ...proxy, url: 'http://other.example.net:3128' } }],
  ['a proxy with another password', { proxy: { ...proxy, credentials: new Secret('user:other') } }],
  ['a proxy without a password', { proxy: { ...proxy, credentials: null } }],
  ['no socket', { socketPath: null }],
  ['another socket', { socketPath: '/run/other.sock' }],
  ['another user', { check: { expected: 8 } }],
  ['no user that is known', { check: { expected: null } }],
  ['no check', { check: null }],
  ['the CAs of this host', { authorities: null }],
  ['another CA', { authorities: ['one', 'three'] }],
  ['fewer CAs', { authorities: ['one'] }],
];

test.each(others)('a connection to %s leads elsewhere', (_, fields) => {
  expect(isSameTarget(target, { ...target })).toBe(true);
  expect([isSameTarget(target, { ...target, ...fields }), isSameTarget({ ...target, ...fields }, target)]).toEqual([
    false,
    false,
  ]);
});

describe('the connection that a call leaves', () => {
  const opened = async () => {
    const { address, url } = await serve((response) => response.end());
    const made = () => {
      const connection = new Connection(targetOf(address, new URL(url)));
      onTestFinished(() => connection.close());
      return connection;
    };
    const isOpen = (connection: Connection) =>
      connection.send({ method: 'GET', path: '/', headers: {}, body: null }).then(
        (response) => response.body.dump().then(() => true),
        () => false,
      );
    return { made, isOpen };
  };

  test('is taken once, by a call to the same target', async () => {
    const [{ made }, { made: elsewhere }] = [await opened(), await opened()];
    const [spare, connection] = [new Spare(), made()];
    expect(spare.take(connection.target)).toBeNull();
    spare.leave(connection);
    expect(spare.take(elsewhere().target)).toBeNull();
    expect(spare.take(connection.target)).toBe(connection);
    expect(spare.take(connection.target)).toBeNull();
  });

  test('is closed once another one is left, and that one is not', async () => {
    const { made, isOpen } = await opened();
    const [spare, first, second] = [new Spare(), made(), made()];
    expect(await isOpen(first)).toBe(true);
    spare.leave(first);
    spare.leave(second);
    expect([await isOpen(first), await isOpen(second)]).toEqual([false, true]);
    expect(spare.take(second.target)).toBe(second);
  });
});
