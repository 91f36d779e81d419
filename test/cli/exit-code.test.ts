import { describe, expect, it } from 'vitest';
import { exitCodeOf } from '../../src/cli/exit-code.ts';
import { CannotListen, UnusableDatabase, UnusableFile } from '../../src/control-plane/errors.ts';
import * as errors from '../../src/core/errors/index.ts';

const cases: [number, Error][] = [
  [1, new TypeError('a bug')],
  [1, new errors.MissingPrivilege('cpn', 'use sudo')],
  [1, new errors.MissingTool('wg', 'install it')],
  [1, new errors.CommandFailed('wg', 1, 'no')],
  [1, new errors.LeftDown('cpn0', 'office', 'https://x')],
  [1, new errors.PortTaken('cpn0', 51820)],
  [1, new errors.UnreadableOutput('wg', 'it is cut off')],
  [1, new errors.BadReply('https://x', 'is not JSON', 'look')],
  [1, new errors.NotConverged('cpn0', [])],
  [1, new errors.ResolverNotRestarted('dnsmasq', '/etc/dnsmasq.conf changed after dnsmasq started')],
  [1, new errors.ResolverNotRestored(new errors.CommandFailed('dnsmasq', 1, 'no'), ['it did not start'])],
  [1, new errors.FileNotTakenBack('cpn0', '/etc/dnsmasq.d/cpn-cpn0.conf', 'dnsmasq', true)],
  [1, new errors.NotConfirmed('cpn0', { revision: '"7"', loss: null, again: 'changed', withinMs: 20_000 })],
  [1, new errors.Unconfirmed('https://x', 'lists no other peer', 30)],
  [1, new errors.Locked('/run/cpn/lock', '7')],
  [1, new errors.HostsFileNotUpdated('cpn0', 'there is no such file')],
  [1, new errors.RulesNotLoaded('cpn0', 'nft -f - exited with 1', { isClosed: false, isConnector: true })],
  [1, new errors.MapsUnsupported('syntax error, unexpected prefix')],
  [1, new errors.HostUnread('cpn0', 'ip did not finish')],
  [1, new errors.MismatchChanged('edge-1', 'key B instead of A')],
  [1, new errors.CannotWithdraw('https://x', 'it does not know how')],
  [1, new errors.CannotReport('https://x', 'it takes no notice of endpoint')],
  [1, new errors.NotKept('cpn0', 20_000)],
  [1, new errors.Interrupted('SIGINT')],
  [1, new errors.CannotMove('cpn0', 'https://x', 'has no network 7', 'check the URL')],
  [1, new errors.CannotRotate('cpn0', 'https://x does not know how', 'join again')],
  [1, new errors.NotRotated('cpn0', 20_000)],
  [1, new errors.UnreadableFile('/x', 'is damaged', 'restore it')],
  [1, new errors.DiskFailed('write', '/x', { name: 'Error', message: '', code: 'ENOSPC', errno: -28 })],
  [1, new errors.MetricsFailed('127.0.0.1', 9586, { name: 'Error', message: '', code: 'EADDRINUSE', errno: -98 })],
  [1, new errors.NamesNotServed('10.77.0.1', 53, { name: 'Error', message: '', code: 'EADDRINUSE', errno: -98 })],
  [1, new errors.NoUsablePeer('office', 'cpn0', ['it has no IPv4 address in its AllowedIPs'])],
  [1, new errors.AddressRefused('office', '198.18.0.1', 'covers the default gateway (198.18.0.1)')],
  [2, new errors.InvalidValue('--mtu', 'x', 'is no number')],
  [2, new errors.Unsupported('a connector', 'wg-quick', 'use Linux')],
  [2, new errors.WrongUsage('--api is missing')],
  [2, new errors.NotOurs('the interface', 'wg0', 'choose another')],
  [2, new errors.NotJoined('no')],
  [4, new errors.Refused(403, 'the enrolment', 'used up', 'make a new key')],
  [5, new errors.Intercepted('https://x', 'it answered with HTML', true)],
  [5, new errors.ProxyFailed('https://x', 'http://proxy:3128', 'HTTPS_PROXY', 'is unreachable', 'check its URL')],
  [5, new errors.ForeignListener('http://127.0.0.1:8787', { problem: 'user 1001 listens there', remedy: null })],
  [5, new errors.RotationPending('cpn0', 'the control plane is unreachable')],
  [5, new errors.Unreachable('https://x', 'refused', { delivered: false, heard: true, retryAfterMs: null })],
];

const socketFailure = (code: string) => Object.assign(new Error(`listen ${code}`), { code });
const listening = (code: string) => new CannotListen('127.0.0.1', 80, socketFailure(code));

/** systemd starts the control plane again after 1, and not after 2. */
const starts: [number, Error][] = [
  [1, listening('EADDRINUSE')],
  [1, listening('EADDRNOTAVAIL')],
  [1, listening('EAI_AGAIN')],
  [2, listening('EACCES')],
  [2, listening('EAFNOSUPPORT')],
  [1, new UnusableDatabase('db:5432/net', 'refused', 'start it', true)],
  [2, new UnusableDatabase('db:5432/net', 'wrong password', 'put the correct one', false)],
  [1, new UnusableFile('/x', 'is on a full disk', 'free some space', { isRetryable: true })],
  [2, new UnusableFile('/x', 'can be read by others', 'chmod 600 /x')],
];

describe('exit codes', () => {
  it.each([...cases, ...starts])('%i for %o', (code, error) => {
    expect(exitCodeOf(error)).toBe(code);
  });

  it('cover every failure of the catalogue', () => {
    const catalogue = Object.values(errors).filter(
      (each) => typeof each === 'function' && each.prototype instanceof errors.CpnError,
    );
    const covered = new Set(cases.map(([, error]) => error.name));
    expect(catalogue.map((each) => each.name).filter((name) => !covered.has(name))).toEqual([]);
  });
});
