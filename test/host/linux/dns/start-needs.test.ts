import { describe, expect, test } from 'vitest';
import { CommandFailed, MissingTool } from '../../../../src/core/errors/index.ts';
import { findMissing, type StartNeed } from '../../../../src/host/linux/dns/start-needs.ts';
import type { Run } from '../../../../src/host/process/run.ts';
import { address } from '../../../core/samples.ts';

/** Only getent(1). */
const run = (async (tool, [database, name]) => {
  if (name === 'of-ldap') return 'of-ldap:x:9999:9999::/:/bin/false\n';
  if (name === 'no-tool') throw new MissingTool(tool, 'none');
  throw new CommandFailed(`${tool} ${database}`, name === 'broken' ? 1 : 2, '');
}) as Run;

const find = (...need: StartNeed) => findMissing(run, [need], [address('192.0.2.1')]);

describe('a setting of dnsmasq', () => {
  test.each([
    ['listen-address', '192.0.2.2', 'no interface has this address'],
    ['interface', 'none0', 'this host has no such interface'],
    ['interface', 'none*', 'this host has no such interface'],
    ['user', 'nosuch', 'this host has no such user'],
    ['user', '65534', 'this host has no such user'],
    ['group', 'nosuch', 'this host has no such group'],
    ['log-facility', '/var/nosuch/log', 'the folder /var/nosuch does not exist'],
    ['pid-file', '/run/nosuch/pid', 'the folder /run/nosuch does not exist'],
  ])('whose value does not exist: %s=%s', async (option, value, reason) => {
    expect(await find(option, value)).toBe(`${option}=${value}: ${reason}`);
  });

  test.each([
    ['listen-address', '192.0.2.1'],
    ['listen-address', '127.0.0.9'],
    ['interface', 'lo'],
    ['interface', 'l*'],
    ['interface', 'lo:1'],
    ['user', 'root'],
    ['user', 'of-ldap'],
    ['user', 'no-tool'],
    ['user', 'broken'],
    ['group', 'root'],
    ['log-facility', '/var/log/x'],
    ['log-facility', 'nosuch/log'],
    // The sandbox of the daemon hides others.
    ['log-facility', '/home/nosuch/log'],
  ])('whose value exists, or cannot be seen: %s=%s', async (option, value) => {
    expect(await find(option, value)).toBeNull();
  });
});
