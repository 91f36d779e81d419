import { describe, expect, it } from 'vitest';
import {
  CommandFailed,
  type CpnError,
  DiskFailed,
  describePortTaken,
  expectCpnError,
  ForeignListener,
  Interrupted,
  InvalidValue,
  Locked,
  NotConfirmed,
  NotKept,
  PortTaken,
  printable,
  printableLines,
  quote,
  Refused,
  RulesNotLoaded,
  Unreachable,
} from '../../../src/core/errors/index.ts';

const url = 'https://cp.example';
const peers = 'neither the control plane nor a peer that answered before responded';
const unconfirmed = { revision: '"7"', loss: null, again: 'changed', withinMs: 30_000 } as const;
const attempts = { delivered: true, heard: false, retryAfterMs: null };

it.each<[string, CpnError, text: string]>([
  [
    'a map',
    new NotConfirmed('cpn0', unconfirmed),
    `cpn0 was rolled back: with revision "7" ${peers} within 30 s; not retried until the network changes`,
  ],
  [
    'a map without a revision',
    new NotConfirmed('cpn0', { ...unconfirmed, revision: null, again: 'repeated' }),
    `cpn0 was rolled back: with the newest map ${peers} within 30 s; it is applied if the control plane sends the same again after 30 s`,
  ],
  [
    'a revision with a control character',
    new NotConfirmed('cpn0', { ...unconfirmed, revision: '"\u001b[2J"' }),
    `cpn0 was rolled back: with revision "\ufffd[2J" ${peers} within 30 s; not retried until the network changes`,
  ],
  [
    'an underlay',
    new NotConfirmed('cpn0', { ...unconfirmed, again: 'later' }),
    `cpn0 was rolled back: with the host's current underlay ${peers} within 30 s; the daemon retries in 10 minutes, or after the next change`,
  ],
  [
    'a loss',
    new NotConfirmed('cpn0', { ...unconfirmed, loss: '3 of 4 peers', again: 'stopped' }),
    'cpn0 was rolled back: with revision "7" it loses 3 of 4 peers, and no retained peer that had a handshake responded before the daemon stopped; the daemon retries when it starts again',
  ],
  [
    'options',
    new NotKept('cpn0', 30_000),
    `the options of cpn0 were rolled back: with the new ones ${peers} within 30 s; try others, or a longer --confirm-within`,
  ],
  [
    'another control plane',
    new NotKept('cpn0', 30_000, url),
    `the options of cpn0 were rolled back: with the new ones the control plane at ${url}, or a peer that answered before, did not respond within 30 s; try others, or a longer --confirm-within`,
  ],
  [
    'a signal',
    new Interrupted('SIGTERM'),
    'SIGTERM interrupted the change before it was confirmed; it was rolled back; run the command again to retry',
  ],
])('a change that was rolled back says why, and what comes next: %s', (_, error, text) => {
  expect(error.message).toBe(text);
  expect(error.isRetryable).toBe(error instanceof NotConfirmed);
});

it.each([
  ['ENOSPC', -28, 'no space left on device (ENOSPC); free some space'],
  ['EDQUOT', -122, 'the disk failed (EDQUOT); free some space'],
  ['EROFS', -30, 'read-only file system (EROFS); mount it writable; the kernel log shows why it is not'],
  ['EACCES', -13, 'permission denied (EACCES); run as root, or correct the permissions'],
  ['EPERM', -1, 'operation not permitted (EPERM); run as root, or correct the permissions'],
  ['EIO', -5, 'i/o error (EIO); check the kernel log for disk errors'],
  ['ELOOP', -40, 'too many symbolic links encountered (ELOOP); check that path, then retry'],
])('a failed disk has a reason and a remedy: %s', (code, errno, text) => {
  const error = new DiskFailed('write', '/etc/x', Object.assign(new Error(), { code, errno }));
  expect(error.message).toBe(`cannot write /etc/x: ${text}`);
  expect(error).toMatchObject({ isRetryable: true, facts: { path: '/etc/x', code } });
});

it('a failed disk without a code is one that failed', () => {
  expect(new DiskFailed('read', '/x', new Error('?')).message).toBe(
    'cannot read /x: the disk failed (EIO); check the kernel log for disk errors',
  );
});

describe('a failed command', () => {
  it('has its exit code and its lines in one', () => {
    expect(new CommandFailed('ip link', 2, 'one\ntwo\nthree\n').message).toBe('ip link exited with 2: one; two; three');
    expect(new CommandFailed('ip link', 2, ' \n').message).toBe('ip link exited with 2');
  });

  it('without an exit code did not finish', () => {
    expect(new CommandFailed('ip link', null, '').message).toBe('ip link did not finish');
    expect(new CommandFailed('ip link', 0, '').message).toBe('ip link exited with 0');
  });
});

it('a port in use names the interface that holds it, by which commands release it', () => {
  const holder = { link: 'cpn1', network: 'lab' };
  expect(describePortTaken(51820, holder, '--listen-port')).toEqual({
    problem: 'UDP port 51820 is in use by cpn1, the interface of network "lab"',
    remedy: 'choose another with --listen-port, or release it with "cpn leave cpn1" or "cpn down cpn1"',
  });
  expect(describePortTaken(null, null, 'X')).toEqual({
    problem: 'its UDP port is in use',
    remedy: 'choose another with X, or stop its process (find it with "ss -lunp" or "wg show")',
  });
  expect(new PortTaken('cpn0', 51820, { holder }).facts).toEqual({ interface: 'cpn0', port: 51820, holder: 'cpn1' });
  expect(new PortTaken('cpn0', null).facts).toEqual({ interface: 'cpn0', port: null });
});

it('packet rules that do not load have another effect on a connector, and in a closed network', () => {
  const text = (isConnector: boolean, isClosed = false) =>
    new RulesNotLoaded('cpn0', 'no', { isClosed, isConnector }).message;
  expect(text(true)).toContain(
    '; nothing is forwarded, and the routes of this connector are withdrawn until they load;',
  );
  for (const isConnector of [false, true])
    expect(text(isConnector, true)).toContain(
      '; the network is closed, so the tunnel carries nothing until they load;',
    );
  expect(text(false)).toContain(
    '; packets from the tunnel reach no container, and neighbours reach the tunnel address,',
  );
});

it('a lock names its holder', () => {
  expect(new Locked('/run/x', '7').message).toBe('another cpn (pid 7) holds /run/x; wait for it to end, or stop it');
  expect(new Locked('/run/x', '7', 'cpn run').message).toMatch(/^another cpn run \(pid 7\)/);
});

describe('a refusal', () => {
  it('has the hints of its reason, or the given one', () => {
    const own = new Refused(403, 'joining', 'the key expired; make another; or ask', null);
    expect(own).toMatchObject({
      message: 'joining was refused (403): the key expired; make another; or ask',
      problem: 'joining was refused (403): the key expired',
      remedy: 'make another; or ask',
    });
    expect(new Refused(404, 'reading', 'a; b', 'join again')).toMatchObject({
      message: 'reading was refused (404): a; b; join again',
      problem: 'reading was refused (404): a; b',
      remedy: 'join again',
    });
    expect(new Refused(404, 'reading', 'gone', null).remedy).toBeNull();
  });

  it('is reasoned, not repeated and of no field unless stated', () => {
    const plain = { repeated: false, reasoned: true, fields: [], deleted: null, isRetryable: false };
    expect(new Refused(404, 'reading', 'gone', null)).toMatchObject(plain);
    const stated = {
      repeated: true,
      reasoned: false,
      fields: [{ field: 'name', rule: 'is taken' }],
      deleted: { id: 7, nonce: 'n' },
    };
    expect(new Refused(410, 'reading', 'gone', null, stated)).toMatchObject(stated);
  });
});

describe('a control plane that does not answer', () => {
  it.each([
    [{}, 'is unreachable: no route; try it'],
    [{ busy: true }, 'is busy: no route; try it'],
    [{ limited: true }, 'limits requests: no route; try it'],
    [{ limited: true, busy: true }, 'limits requests: no route; try it'],
  ])('is described by its last reply: %j', (last, text) => {
    const error = new Unreachable(url, 'no route', { ...attempts, ...last, remedy: 'try it' });
    expect(error.message).toBe(`the control plane at ${url} ${text}`);
  });

  it('has done nothing, nor lasts, unless stated', () => {
    expect(new Unreachable(url, 'x', attempts)).toMatchObject({
      ...{ delivered: true, perhapsDone: false, heard: false, retryAfterMs: null },
      ...{ remedy: null, lasting: false, waitEnded: false, isRetryable: true },
    });
    const stated = { perhapsDone: true, heard: true, retryAfterMs: 5, lasting: true, waitEnded: true, remedy: 'x' };
    expect(new Unreachable(url, 'x', { ...attempts, ...stated })).toMatchObject(stated);
  });

  it('may belong to another user, who is confirmed if nothing else is known', () => {
    const remedyOf = (remedy: string | null) => new ForeignListener(url, { problem: 'user 7 listens', remedy }).remedy;
    expect(remedyOf('stop it')).toBe('stop it');
    expect(remedyOf(null)).toContain(`confirm it with "cpn set --api ${url}"`);
  });
});

it('only expected failures are returned', () => {
  const [known, unknown] = [new InvalidValue('name', 'x', 'is too short'), new TypeError('bug')];
  expect(expectCpnError(known)).toBe(known);
  expect(() => expectCpnError(unknown)).toThrow(unknown);
});

describe('a value in a message', () => {
  it('is quoted, in one line, and cut after 80 characters', () => {
    expect(quote('a"b\n')).toBe('"a\\"b\ufffd"');
    expect(quote('x'.repeat(80))).toBe(`"${'x'.repeat(80)}"`);
    expect(quote('x'.repeat(81))).toBe(`"${'x'.repeat(77)}..."`);
    expect([quote(7), quote(null), quote(undefined)]).toEqual(['"7"', '"null"', '"undefined"']);
  });

  it('loses control characters, each of them, and keeps emoji', () => {
    expect(printable('a\u001b[2J\u202eb\u200bc')).toBe('a\ufffd[2J\ufffdb\ufffdc');
    expect(printable('\u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u2764\ufe0f')).toBe(
      '\u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u2764\ufe0f',
    );
    expect(printable('a\nb\tc')).toBe('a\ufffdb\ufffdc');
    expect(printableLines('a\n\tb\u001b\nc\r')).toBe('a\n\tb\ufffd\nc\ufffd');
  });
});
