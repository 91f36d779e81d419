import { createHash } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Input } from '../../../src/cli/input/input.ts';
import { readMaps, readProbes } from '../../../src/cli/parse/host-options.ts';
import { changeFlags, readChanges } from '../../../src/cli/parse/option-changes.ts';
import { noOptionChanges } from '../../app/joined-state.ts';
import { memory } from '../../lab/memory.ts';

const read = (given: Record<string, unknown>, environment = {}) =>
  readChanges(new Input(given, changeFlags, environment));

describe('what is to be changed', () => {
  it('is what the flags name, and nothing else', async () => {
    const { options, ...others } = await read({ mtu: '1300', 'accept-routes': false, 'rotate-every': '30d' });
    expect(options).toEqual({ mtu: 1300, acceptRoutes: false, rotateEvery: 30 * 86_400 });
    expect({ ...others, options: {} }).toEqual(noOptionChanges);
  });

  it.each([
    [{ mtu: 'auto' }, { options: { mtu: null } }],
    [{ 'listen-port': 'any' }, { options: { listenPort: null } }],
    [{ 'rotate-every': 'never' }, { options: { rotateEvery: null } }],
    [{ 'network-secret-file': 'none' }, { networkSecret: null }],
    [{ endpoint: 'none' }, { endpoint: null }],
    [{ endpoint: 'auto' }, { endpoint: 'auto' }],
    [{ endpoint: '203.0.113.1:1' }, { endpoint: { host: '203.0.113.1', port: 1 } }],
    [{ api: 'https://cp.example.net/' }, { service: { url: 'https://cp.example.net', insecureHttp: false } }],
    [{ api: 'http://127.0.0.1:8080' }, { service: { url: 'http://127.0.0.1:8080', insecureHttp: false } }],
    [{ api: 'http://cp.example.net', 'insecure-http': true }, { service: { insecureHttp: true } }],
    [{ pin: 'strict' }, { options: { pin: 'strict' } }],
    [{ 'refuse-route': '10.0.0.0/8' }, { refuseRoutes: ['10.0.0.0/8'] }],
    [
      { 'drop-probe': ['nas', 'nas:80'] },
      {
        dropProbes: [
          { host: 'nas', port: null },
          { host: 'nas', port: 80 },
        ],
      },
    ],
    [
      { map: ['10.201.1.0/24=192.168.1.0/24'], 'drop-map': ['10.201.2.0/24'] },
      { addMaps: [{ route: '10.201.1.0/24', local: '192.168.1.0/24' }], dropMaps: ['10.201.2.0/24'] },
    ],
  ])('reads %o', async (given, changes) => {
    expect(await read(given)).toMatchObject(changes);
  });

  it('moves no control plane because of a variable, which names one for all commands', async () => {
    const environment = { CPN_API: 'https://cp.example.net', CPN_API_URL: 'https://cp.example.net' };
    expect(await read({ mtu: '1300' }, environment)).not.toHaveProperty('service');
    await expect(read({}, environment)).rejects.toThrow('no option to change was given');
  });

  it('changes neither proxy nor CAs because of a variable, which is for all commands', async () => {
    const environment = { CPN_PROXY: 'http://proxy.example.net:3128', CPN_CA_FILE: '/nonexistent' };
    const { options, ...others } = await read({ mtu: '1300' }, environment);
    expect([options, Object.keys(others)]).toEqual([
      { mtu: 1300 },
      ['allowRoutes', 'refuseRoutes', 'addProbes', 'dropProbes', 'addMaps', 'dropMaps'],
    ]);
    await expect(read({}, environment)).rejects.toThrow('no option to change was given');
    expect(await read({ proxy: 'none', 'ca-file': 'none' })).toMatchObject({ proxy: 'none', authorities: null });
  });

  it('is a network secret of a file, whichever way it is named', async () => {
    const path = join(memory, `cpn-secret-${process.pid}`);
    const bytes = createHash('sha512').update('a network').digest();
    await writeFile(path, bytes, { mode: 0o600 });
    onTestFinished(() => rm(path));
    const [plain, named] = [
      await read({ 'network-secret-file': path }),
      await read({ 'network-secret-file': `file:${path}` }),
    ];
    expect(plain.networkSecret).not.toBeNull();
    expect(named.networkSecret?.reveal()).toBe(plain.networkSecret?.reveal());
  });

  it.each([
    ['connector', null],
    ['origin', '--probe is for the LAN behind a connector'],
    ['admin_device', '--probe is for the LAN behind a connector'],
  ] as const)('of a host of the type %s are probes or not', async (type, problem) => {
    const probes = readProbes(new Input({ probe: ['nas'] }, changeFlags, {}), type);
    if (problem === null) expect(await probes).toHaveLength(1);
    else await expect(probes).rejects.toThrow(problem);
    expect(await readProbes(new Input({}, changeFlags, {}), type)).toEqual([]);
  });

  it.each([
    ['connector', null],
    ['origin', '--map is for the LAN behind a connector'],
  ] as const)('of a host of the type %s are maps or not', async (type, problem) => {
    const maps = readMaps(new Input({ map: ['10.201.1.0/24=192.168.1.0/24'] }, changeFlags, {}), type);
    if (problem === null) expect(await maps).toHaveLength(1);
    else await expect(maps).rejects.toThrow(problem);
    expect(await readMaps(new Input({}, changeFlags, {}), type)).toEqual([]);
  });

  it.each([
    [{}, 'no option to change was given'],
    [{ mtu: 'large' }, 'is not a number from 576'],
    [{ pin: 'none' }, 'must be one of'],
    [{ api: 'http://cp.example.net' }, 'plain http'],
    [{ api: 'https://cp.example.net', name: 'edge' }, '--api does not go together with --name'],
    [{ api: 'https://cp.example.net', endpoint: 'auto' }, '--api does not go together with --endpoint'],
    [{ 'drop-probe': 'a b' }, '--drop-probe "a b"'],
    [{ map: ['10.201.1.0/24'] }, '--map "10.201.1.0/24" is not a map of two prefixes'],
    [{ map: ['10.201.1.0/24=192.168.1.0/24', '10.201.1.0/24=192.168.2.0/24'] }, 'overlap in 10.201.1.0/24'],
    [{ 'drop-map': '10.201.1.0' }, '--drop-map "10.201.1.0"'],
    [{ 'network-secret-file': '/nowhere' }, '/nowhere'],
  ])('refuses %o', async (given, problem) => {
    await expect(read(given)).rejects.toThrow(problem);
  });
});
