import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { disableIdleDaemon, enableDaemon } from '../../../src/cli/daemon/daemon-unit.ts';
import { Input } from '../../../src/cli/input/input.ts';
import { CommandFailed } from '../../../src/core/errors/index.ts';
import { state } from '../../store/samples.ts';

let said: string;
let folder: string;
const input = new Input({}, {}, {});

beforeEach(() => {
  said = '';
  folder = mkdtempSync(join(tmpdir(), 'cpn-unit-'));
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    said += String(text);
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

/** A unit that records its calls, or fails them. */
function prepareUnit(isEnabled: boolean, failure?: Error) {
  const calls: string[] = [];
  const call = (name: string) => async () => {
    if (failure) throw failure;
    calls.push(name);
  };
  const unit = { name: 'cpn.service', isEnabled, enable: call('enable'), disable: call('disable') };
  return { calls, open: async () => unit };
}

describe('the unit of the daemon after a join', () => {
  it('is started and enabled, which is said', async () => {
    const { calls, open } = prepareUnit(false);
    expect([await enableDaemon(input, open), calls]).toEqual([true, ['enable']]);
    expect(said).toContain('cpn.service is started and enabled at boot');
  });

  it('is none where it is not installed', async () => {
    expect([await enableDaemon(input, async () => null), said]).toEqual([false, '']);
  });

  it('that fails is a warning: the host has joined', async () => {
    const { open } = prepareUnit(false, new CommandFailed('systemctl enable', 1, 'Access denied'));
    expect(await enableDaemon(input, open)).toBe(false);
    expect(said).toContain('Access denied');
    const bug = prepareUnit(false, new TypeError('a bug'));
    await expect(enableDaemon(input, bug.open)).rejects.toThrow('a bug');
  });
});

describe('the unit of the daemon after a leave', () => {
  const unreadable = [{ interface: 'cpn1' }];
  const leave = (networks: object, isEnabled = true) => {
    const { calls, open } = prepareUnit(isEnabled);
    const store = { list: async () => ({ states: [], unreadable: [], ...networks }) };
    const file = join(folder, 'join.conf');
    const done = disableIdleDaemon(input, store as never, open, file);
    return done.then(() => calls);
  };

  it.each([
    ['no network is left', {}, ['disable']],
    ['a network is left', { states: [state] }, []],
    ['a network is left whose state cannot be read', { unreadable }, []],
  ])('is stopped and disabled only where none needs it: %s', async (_, networks, expected) => {
    expect(await leave(networks)).toEqual(expected);
    expect(said.includes('stopped and disabled')).toBe(expected.length > 0);
  });

  it('that is not enabled is left alone', async () => {
    expect([await leave({}, false), said]).toEqual([[], '']);
  });

  it.each([true, false])(
    'a file by which this host joins at the next boot is warned about: enabled %s',
    async (isOn) => {
      writeFileSync(join(folder, 'join.conf'), '');
      await leave({}, isOn);
      expect(said).toContain('join.conf still exists: this host joins again at the next boot');
      said = '';
      await leave({ states: [state] }, isOn);
      expect(said).toBe('');
    },
  );
});
