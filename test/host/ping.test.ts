import { describe, expect, it } from 'vitest';
import { CommandFailed, MissingTool } from '../../src/core/errors/index.ts';
import { parseAddress } from '../../src/core/net/cidr.ts';
import { probe } from '../../src/host/probes.ts';

const target = { address: parseAddress('192.0.2.9'), port: null };

describe('a probe by ping', () => {
  it('ends ping itself first, which waits for the reply as long as it may', async () => {
    const calls: unknown[] = [];
    const run = async (...call: unknown[]) => {
      calls.push(call);
      return '';
    };
    expect(await probe(run, target, 2_500)).toBe(true);
    expect(calls).toEqual([['ping', ['-n', '-q', '-c', '1', '-W', '2.5', '192.0.2.9'], { deadlineMs: 3_000 }]]);
  });

  it.each([
    ['no reply', 1, ''],
    ['no end', null, 'timed out after 3000 ms'],
    ['no route', 2, 'ping: connect: Network is unreachable'],
    ['a router that has none', 2, 'From 192.0.2.1: Destination Host Unreachable'],
    ['no route of this host', 2, 'ping: sendmsg: No route to host'],
  ])('has a negative result with %s', async (_, exitCode, stderr) => {
    const run = async () => {
      throw new CommandFailed('ping', exitCode, stderr);
    };
    expect(await probe(run, target, 2_500)).toBe(false);
  });

  it.each([
    new CommandFailed('ping', 2, 'ping: socket: Operation not permitted'),
    new CommandFailed('ping', 127, 'ping: error while loading shared libraries'),
    new MissingTool('ping', 'install it'),
  ])('has none where ping cannot run: %s', async (error) => {
    const run = async () => {
      throw error;
    };
    await expect(probe(run, target, 2_500)).rejects.toBe(error);
  });
});
