import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { makeCertificate } from '../../../test/api/certificate.ts';
import { DataCenter } from '../../../test/e2e/data-center.ts';
import { type ControlPlane, serveControlPlane } from '../../../test/lab/control-plane.ts';
import type { Host } from '../../../test/lab/host.ts';
import type { Lab } from '../../../test/lab/lab.ts';
import type { Comparison } from '../comparison.ts';
import { minutesOf } from '../host/minutes.ts';

const address = '203.0.113.1';
/** Complete reports and the first figures are sent by then. */
const settleMs = 180_000;
const silenceMs = 30_000;
const limit = 1024;

/** A host, and the address that the control plane receives its packets from. */
type Counted = readonly [host: Host, from: string];

/**
 * What idle hosts send to the control plane and receive of it over TLS, as IP packets on its wire,
 * for ten minutes by default. Of two alike, one reports, and the other takes the control plane for
 * one without reports.
 */
export async function compareReportBytes(): Promise<Comparison[]> {
  const minutes = minutesOf(10);
  const folder = await mkdtemp(join(tmpdir(), 'cpn-certificate-'));
  let center: DataCenter | undefined;
  try {
    const { cert, key } = makeCertificate({ name: address });
    const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
    await writeFile(certFile, cert);
    await writeFile(keyFile, key, { mode: 0o600 });
    const start = (lab: Lab) => startTlsPlane(lab, certFile, keyFile);
    center = await DataCenter.start(start, { NODE_EXTRA_CA_CERTS: certFile });
    const [reporting, silent] = await addHosts(center);
    await startCount(center.controlPlane.host, [...reporting, ...silent]);
    // A pass that began before may write the state as it was.
    for (let left = settleMs; left > 0; left -= silenceMs) {
      for (const [host] of silent) await withoutReports(host);
      await delay(silenceMs);
    }
    const before = await readCount(center.controlPlane.host);
    await delay(minutes * 60_000);
    const after = await readCount(center.controlPlane.host);
    const perMinute = after.map((bytes, index) => (bytes - (before[index] ?? 0)) / minutes);
    const [ours, theirs] = [perMinute.slice(0, reporting.length), perMinute.slice(reporting.length)];
    return [
      {
        what: 'an idle host with its control plane over TLS, a minute',
        ...{ baseline: 'a host that does not report', unit: 'bytes', ours, theirs, target: null },
      },
      {
        what: 'the reports of an idle host over TLS, a minute',
        ...{ baseline: '', unit: 'bytes', ours: ours.map((bytes, index) => bytes - (theirs[index] ?? 0)), theirs: [] },
        target: { atMost: limit, text: `≤ ${limit}` },
      },
    ];
  } finally {
    await center?.stop();
    await rm(folder, { recursive: true });
  }
}

async function startTlsPlane(lab: Lab, certFile: string, keyFile: string): Promise<ControlPlane> {
  const host = await lab.addHost('control-plane', { address: `${address}/24` });
  const [url, password] = [`https://${address}:8787`, join(host.homeDir, 'password')];
  await writeFile(password, randomBytes(18).toString('base64url'), { mode: 0o600 });
  const process = await serveControlPlane(host, address, password, ['--tls-cert', certFile, '--tls-key', keyFile]);
  await host.cpn(['login', '--api', url, '--email', 'owner@example.net', '--password-file', password]);
  return { host, url, process, cpn: (args) => host.cpn(args) };
}

/** Two connectors of one LAN, two origins and two laptops. */
async function addHosts(center: DataCenter): Promise<readonly [readonly Counted[], readonly Counted[]]> {
  const pairs: [Counted[], Counted[]] = [[], []];
  for (const [index, hosts] of pairs.entries()) {
    const connector = await center.addConnector(1 + index);
    const origin = await center.addOrigin(`origin-${index}`, `203.0.113.${22 + index}`);
    const laptop = await center.addLaptop(`laptop-${index}`, `203.0.113.${40 + index}`);
    hosts.push([connector, connector.address], [origin, origin.address], [laptop, `203.0.113.${40 + index}`]);
  }
  const connectors = pairs.flatMap(([connector]) => connector?.[0] ?? []);
  for (const [host] of pairs.flatMap((hosts) => hosts.slice(1))) await center.awaitAnswers(host, ...connectors);
  return pairs;
}

/** The running daemon reads the description of the service again after an hour. */
async function withoutReports(host: Host): Promise<void> {
  const path = join(host.stateDir, 'cpn0.json');
  const state = JSON.parse(await readFile(path, 'utf8'));
  if (!state.features.includes('peer-report')) return;
  const features = state.features.filter((name: string) => name !== 'peer-report');
  await writeFile(`${path}.new`, JSON.stringify({ ...state, features }), { mode: 0o600 });
  await rename(`${path}.new`, path);
}

async function startCount(host: Host, counted: readonly Counted[]): Promise<void> {
  const counters = counted.map((_, index) => `counter c${index} {}`);
  const chain = (hook: string, match: string, port: string) =>
    [
      `chain ${hook} {\ntype filter hook ${hook} priority 0`,
      ...counted.map(([, from], index) => `ip ${match} ${from} tcp ${port} 8787 counter name c${index}`),
      '}',
    ].join('\n');
  const chains = [chain('input', 'saddr', 'dport'), chain('output', 'daddr', 'sport')];
  await host.exec(['nft', '-f', '-'], { input: `table ip count {\n${[...counters, ...chains].join('\n')}\n}\n` });
}

/** Bytes of each, with the headers of IP and TCP. */
async function readCount(host: Host): Promise<number[]> {
  const { stdout } = await host.exec(['nft', 'list', 'counters']);
  const bytes = [...stdout.matchAll(/counter c(\d+) \{\s*packets \d+ bytes (\d+)/g)];
  return bytes.toSorted(([, a], [, b]) => Number(a) - Number(b)).map(([, , count]) => Number(count));
}
