import { afterEach, describe, expect, it, vi } from 'vitest';
import { events } from '../../../src/cli/commands/events.ts';
import { showNetwork } from '../../../src/cli/commands/network.ts';
import { listPeers } from '../../../src/cli/commands/peer.ts';
import { Input } from '../../../src/cli/input/input.ts';
import type { Command } from '../../../src/cli/parse/command.ts';
import { WrongUsage } from '../../../src/core/errors/index.ts';
import { type Answer, json, startForeignService } from '../../plain/foreign-service.ts';

afterEach(() => vi.restoreAllMocks());

const described = { paths: { '/api/networks/{id}/health': { get: { responses: {} } } } };

async function run(command: Command, { health, flags = {} }: { health?: Answer; flags?: Record<string, unknown> }) {
  const written = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      written[name] += String(text);
      return true;
    });
  }
  const service = await startForeignService({
    description: health ? described : null,
    answers: health ? { 'GET /api/networks/4711/health': health } : {},
  });
  const environment = { CPN_API_TOKEN: 'token', NO_COLOR: '1' };
  await command.run(new Input({ api: service.url, network: 'office', ...flags }, command.flags, environment));
  return written;
}

const observed: Answer = (response) =>
  json(response, 200, { data: { peers: [{ id: 9001, state: 'online', version: '0.1.0', last_seen: '2026-01-01' }] } });

describe.each([listPeers, showNetwork])('$name', (command) => {
  it('has what hosts observe', async () => {
    const { stdout, stderr } = await run(command, { health: observed });
    expect(stdout).toMatch(
      /peer +name +type +state +last seen +path +version .*\n9001 +gateway +origin +online +\d+ h ago +- +0\.1\.0 /,
    );
    expect(stderr).toBe('');
    const { peers } = JSON.parse((await run(command, { health: observed, flags: { json: true } })).stdout);
    expect(peers[0]).toMatchObject({
      state: 'online',
      last_seen: '2026-01-01T00:00:00.000Z',
      version: '0.1.0',
      path: null,
    });
  });

  it('has no columns for it of a service without it, and null in JSON', async () => {
    const { stdout, stderr } = await run(command, {});
    expect(stdout).toMatch(/peer +name +type +address /);
    expect(stderr).toBe('');
    const { peers } = JSON.parse((await run(command, { flags: { json: true } })).stdout);
    expect(peers[0]).toMatchObject({ name: 'gateway', state: null, last_seen: null, version: null, path: null });
  });

  it('has the peers and a warning where it cannot be read', async () => {
    const health: Answer = (response) => json(response, 403, { message: 'not for you' });
    const { stdout, stderr } = await run(command, { health });
    expect(stdout).toMatch(/peer +name +type +address /);
    expect(stderr).toContain('warning: reading the health of network 4711 was refused (403): not for you');
  });
});

it('events are not asked of a service that describes none', async () => {
  await expect(run(events, {})).rejects.toThrow(WrongUsage);
});
