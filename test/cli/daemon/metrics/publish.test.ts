import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import http from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { NetworkStatus } from '../../../../src/app/problems/network-status.ts';
import { openTextFile } from '../../../../src/cli/context.ts';
import { createMetrics } from '../../../../src/cli/daemon/metrics/metrics.ts';
import { coalesceSnapshots, publishMetrics } from '../../../../src/cli/daemon/metrics/publish.ts';
import { serveMetrics } from '../../../../src/cli/daemon/metrics/serve.ts';
import { runProgram } from '../../../../src/cli/program.ts';
import { joinedTo, mapAt } from '../../../app/joined-state.ts';
import { SimulatedHost } from '../../../app/simulated-host.ts';
import { eventually } from '../../../lab/eventually.ts';
import { readExposition } from './exposition.ts';

const loopback = { host: '127.0.0.1', port: 0 };

/** What is answered at `url` to a request with these parts. */
function ask(
  url: string,
  options: http.RequestOptions = {},
): Promise<{ status: number | undefined; type: string | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { agent: false, ...options }, async (response) => {
      let text = '';
      for await (const part of response) text += part;
      resolve({ status: response.statusCode, type: response.headers['content-type'], text });
    });
    request.on('error', reject).end();
  });
}

async function serve(format: () => Promise<string>) {
  const server = await serveMetrics(loopback, { contentType: 'text/plain; version=0.0.4', format });
  onTestFinished(() => server.close());
  return server;
}

describe('what is served', () => {
  it('is the metrics, at their place, to be read only', async () => {
    const { url } = await serve(async () => 'cpn 1\n');
    expect(await ask(url)).toEqual({ status: 200, type: 'text/plain; version=0.0.4', text: 'cpn 1\n' });
    expect(await ask(url, { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
    expect(await ask(url, { method: 'POST' })).toMatchObject({ status: 405 });
    expect(await ask(`${url}/../secrets`)).toMatchObject({ status: 404 });
  });

  it('is nothing to a page that brings a name of its own, and nothing of a failure', async () => {
    const { url } = await serve(async () => {
      throw new Error('canary');
    });
    for (const host of ['evil.example', 'evil.example:80', '127.0.0.1.evil.example']) {
      expect(await ask(url, { headers: { host } })).toMatchObject({ status: 403 });
    }
    for (const host of ['localhost:9586', '127.0.0.1', '[::1]:80']) {
      const { status, text } = await ask(url, { headers: { host } });
      expect([status, text]).toEqual([500, expect.not.stringContaining('canary')]);
    }
  });
});

it('concurrent and soon following callers share a snapshot; a failed one is not reused', async () => {
  let looks = 0;
  let seconds = 0;
  const fresh = [Promise.withResolvers<NetworkStatus[]>(), Promise.withResolvers<NetworkStatus[]>()];
  const observe = coalesceSnapshots(
    () => (fresh[looks++] ?? fresh[0])?.promise ?? Promise.reject(),
    () => seconds,
  );
  const first = [observe(), observe()];
  seconds = 60;
  first.push(observe());
  fresh[0]?.resolve([]);
  await Promise.all(first);
  seconds = 61;
  await observe();
  expect(looks).toBe(1);
  seconds = 63;
  const second = observe();
  fresh[1]?.reject(new Error('no'));
  await expect(second).rejects.toThrow('no');
  await observe();
  expect(looks).toBe(3);
});

describe('publishing the metrics of a daemon', () => {
  /** A host whose daemon tells its metrics until the test is over, or `stop` is called. */
  async function telling(outlets: { port?: number; path?: string }) {
    const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [])));
    const stop = new AbortController();
    const listen = outlets.port === undefined ? null : { host: '127.0.0.1', port: outlets.port };
    const file = outlets.path === undefined ? null : await openTextFile(outlets.path);
    const tools = { ...simulated.tools, sleep: () => sleep(20), monotonic: () => performance.now() };
    const publishing = publishMetrics(tools, createMetrics(), { listen, file }, stop.signal);
    const end = () => {
      stop.abort();
      return publishing;
    };
    onTestFinished(end);
    return { simulated, end };
  }

  it('over http, from when the address is there to the end of the daemon', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    const port = await eventually('a port', () => (other.address() as { port: number } | null)?.port);
    const { simulated, end } = await telling({ port });
    const url = `http://127.0.0.1:${port}/metrics`;
    await eventually('a warning', () => simulated.logged.some(({ level }) => level === 'warn'));
    expect(simulated.logged).toEqual([
      {
        level: 'warn',
        message: 'metrics cannot be served; retrying',
        facts: { kind: 'MetricsFailed', error: expect.stringContaining(`127.0.0.1 port ${port}`) },
      },
    ]);
    other.close();
    await eventually('metrics', () => simulated.logged.some(({ message }) => message === 'serving metrics'));
    expect(readExposition((await ask(url)).text).has('process_cpu_seconds_total')).toBe(true);
    await end();
    await expect(ask(url)).rejects.toThrow('ECONNREFUSED');
  });

  it('writes a file that others may read, which is whole at any time and goes with the daemon', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'cpn-metrics-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const path = join(folder, 'cpn.prom');
    const umask = process.umask(0o077);
    onTestFinished(() => void process.umask(umask));
    const { end } = await telling({ path });
    const text = await eventually('the file', () => readFile(path, 'utf8').catch(() => null));
    expect(readExposition(text).get('cpn_network_state')?.samples).toHaveLength(3);
    expect((await stat(path)).mode & 0o777).toBe(0o644);
    await end();
    expect(await readdir(folder)).toEqual([]);
  });

  it('without a warning at each observation of what a join left unfinished', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'cpn-metrics-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const simulated = await SimulatedHost.with(joinedTo(mapAt('"1"', [])));
    await simulated.tools.store.write({ ...(await simulated.state()), interface: 'cpn1', membership: null });
    const warned: string[] = [];
    const stop = new AbortController();
    const file = await openTextFile(join(folder, 'cpn.prom'));
    const tools = {
      ...simulated.tools,
      warn: (text: string) => void warned.push(text),
      sleep: async () => stop.abort(),
    };
    await publishMetrics(tools, createMetrics(), { listen: null, file }, stop.signal);
    expect([simulated.observations > 0, warned]).toEqual([true, []]);
  });

  it('nowhere where the file cannot be written, which is said once', async () => {
    const { simulated, end } = await telling({ path: '/nonexistent/cpn.prom' });
    await eventually('several tries', () => simulated.observations >= 3);
    await eventually('a warning', () => simulated.logged.length > 0);
    await end();
    expect(simulated.logged.map(({ message }) => message)).toEqual(['the metrics file cannot be written']);
  });
});

it.each([
  ['--metrics', '127.0.0.1', '--metrics "127.0.0.1" is not an address to listen on'],
  ['--metrics-file', '/tmp/cpn.txt', '--metrics-file "/tmp/cpn.txt" does not end in .prom'],
])('%s %s is refused before anything is done', async (flag, value, said) => {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => write.mockRestore());
  expect(await runProgram(['run', flag, value], {})).toBe(2);
  expect(write.mock.calls.join('')).toContain(said);
});
