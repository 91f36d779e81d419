import { describe, expect, it } from 'vitest';
import { Input } from '../../src/cli/input.ts';
import { changeFlags, readChanges } from '../../src/cli/option-changes.ts';

const read = (given: Record<string, unknown>) => readChanges(new Input(given, changeFlags, {}));

describe('what is to be changed', () => {
  it('is what the flags name, and nothing else', async () => {
    const { options, ...others } = await read({ mtu: '1300', 'accept-routes': false, 'rotate-every': '30d' });
    expect(options).toEqual({ mtu: 1300, acceptRoutes: false, rotateEvery: 30 * 86_400 });
    expect(others).toEqual({ allowRoutes: [], refuseRoutes: [], addProbes: [], dropProbes: [] });
  });

  it.each([
    [{ mtu: 'auto' }, { options: { mtu: null } }],
    [{ 'listen-port': 'any' }, { options: { listenPort: null } }],
    [{ 'rotate-every': 'never' }, { options: { rotateEvery: null } }],
    [{ 'network-secret-file': 'none' }, { networkSecret: null }],
    [{ endpoint: 'none' }, { endpoint: null }],
    [{ endpoint: 'auto' }, { endpoint: 'auto' }],
    [{ endpoint: '203.0.113.1:1' }, { endpoint: { host: '203.0.113.1', port: 1 } }],
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
  ])('reads %o', async (given, changes) => {
    expect(await read(given)).toMatchObject(changes);
  });

  it.each([
    [{}, 'there is nothing to change'],
    [{ mtu: 'large' }, 'is not a number from 576'],
    [{ pin: 'none' }, 'is none of'],
    [{ 'drop-probe': 'a b' }, '--drop-probe "a b"'],
    [{ 'network-secret-file': '/nowhere' }, '/nowhere'],
  ])('refuses %o', async (given, problem) => {
    await expect(read(given)).rejects.toThrow(problem);
  });
});
