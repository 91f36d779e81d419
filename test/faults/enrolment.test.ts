import { readFile, writeFile } from 'node:fs/promises';
import { join as path } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Office, plan, startOffice } from '../e2e/office.ts';
import { type Joined, makeKey } from '../lab/control-plane.ts';
import type { Host } from '../lab/host.ts';
import { FaultyProxy } from './faulty-proxy.ts';
import { addEdge, addHost, addMember, edgeAddress } from './members.ts';
import { injecting } from './record.ts';
import { whilePinging } from './while-pinging.ts';

let office: Office;
let edge: Host;

beforeAll(async () => {
  office = await startOffice();
  edge = await addEdge(office);
});

afterAll(() => office?.lab.stop());

const stateOf = (host: Host) => path(host.stateDir, 'cpn0.json');

it('19: every reply to an enrolment is lost; the same keys come to the same peer and address', () =>
  injecting(19, async (row) => {
    const [host, proxy] = [await addHost(office, 'unlucky'), await FaultyProxy.start(office.lab, office.controlPlane)];
    const listed = async () => {
      const { stdout } = await office.controlPlane.cpn(['network', 'show', 'office', '--json']);
      return JSON.parse(stdout).peers.filter(({ name }: { name: string }) => name === 'unlucky');
    };
    const input = await makeKey(office.controlPlane, 'office', 'unlucky');
    const command = ['join', '-', '--api', proxy.url, '--insecure-http', '--name', 'unlucky', '--json', '--wait', '0'];
    await proxy.inject({ kind: 'lose' });
    row.injected('every reply reset until the join gives up');
    expect((await host.cpn(command, { input, allowFailure: true })).exitCode).toBe(5);
    row.detected();
    const { privateKey } = JSON.parse(await readFile(stateOf(host), 'utf8'));
    const [enrolled] = await listed();
    await proxy.pass();
    const joined: Joined = JSON.parse((await host.cpn(command, { input })).stdout);
    row.repaired();
    expect(JSON.parse(await readFile(stateOf(host), 'utf8')).privateKey).toBe(privateKey);
    expect(await listed()).toEqual([enrolled]);
    expect(enrolled).toMatchObject({ public_key: joined.public_key, address: joined.address, id: joined.peer.id });
    expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
  }));

it('25: a state of a newer version is refused and preserved, and the tunnel stays', () =>
  injecting(25, async (row) => {
    const { host } = await addMember(office, edge, 'downgraded');
    const text = await readFile(stateOf(host), 'utf8');
    const newer = JSON.stringify({ ...JSON.parse(text), version: 999 });
    const losses = await whilePinging(host, edgeAddress, async () => {
      await writeFile(stateOf(host), newer);
      row.injected('version 999');
      for (const command of ['reconcile', 'down', 'up', 'leave']) {
        const { exitCode, stderr } = await host.cpn([command], { allowFailure: true });
        expect(stderr).toMatch(/cpn0\.json is of version 999; use the cpn that wrote it/);
        expect(exitCode).toBe(1);
      }
      row.detected();
      expect(await readFile(stateOf(host), 'utf8')).toBe(newer);
      await writeFile(stateOf(host), text);
      expect(await plan(host)).toEqual({ exitCode: 0, changes: [] });
      row.repaired();
    });
    row.lost(losses);
    expect(losses.lost).toBe(0);
  }));
