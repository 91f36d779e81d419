import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { DoctorTools } from '../app/doctor/examination.ts';
import { redact } from '../core/crypto/secret.ts';
import { CpnError } from '../core/errors/index.ts';
import { packTar } from '../core/util/tar.ts';
import { version } from '../core/util/version.ts';
import { toJson } from './output/output.ts';
import { diagnosesToJson } from './output/show-diagnoses.ts';
import { explanationToJson } from './output/show-explanation.ts';
import { statusToJson } from './output/show-status.ts';

/** The files of a debug bundle by name, without secrets. */
export type Bundle = ReadonlyMap<string, string>;

/** Collects the files. If a file cannot be created, it contains the error. */
export async function gatherBundle(tools: DoctorTools): Promise<Bundle> {
  const [{ describeStateFiles }, { examine }, { readStatus }, { planNetworks }, { explainAddress }] = await Promise.all(
    [
      import('../app/status/describe-state-files.ts'),
      import('../app/doctor/examine.ts'),
      import('../app/status/status.ts'),
      import('../app/networks/reconcile.ts'),
      import('../app/inspect/explain.ts'),
    ],
  );
  const { states, secrets, peers } = await describeStateFiles(tools);
  const files = new Map<string, string>([
    ['version.json', toText({ cpn: version, node: process.versions, platform: process.platform, arch: process.arch })],
    ['doctor.json', await attempt(async () => diagnosesToJson(await examine(tools)))],
    ['status.json', await attempt(async () => ({ networks: (await readStatus(tools)).map(statusToJson) }))],
    ['plan.json', await attempt(async () => ({ networks: (await planNetworks(tools)).map(passToJson) }))],
  ]);
  for (const [link, state] of states) files.set(`state/${link}.json`, toText(state));
  for (const address of peers) {
    files.set(
      `explain/${address.replaceAll(':', '_')}.json`,
      await attempt(async () => explanationToJson(await explainAddress(tools, address))),
    );
  }
  for (const [name, text] of await tools.inspector.diagnostics()) files.set(`host/${name}`, text);
  return new Map([...files].map(([name, text]) => [name, redact(text, secrets)]));
}

export function packBundle(bundle: Bundle, now: Date): Promise<Uint8Array> {
  const entries = [...bundle].map(([name, text]) => ({ path: `cpn-debug/${name}`, content: Buffer.from(text) }));
  return promisify(gzip)(packTar(entries, Math.floor(now.getTime() / 1000)));
}

function passToJson({ interface: link, changes, unsynced, failure }: Awaited<ReturnType<Planning>>[number]) {
  return { interface: link, changes, unsynced: unsynced?.message ?? null, failure: failure?.message ?? null };
}

type Planning = typeof import('../app/networks/reconcile.ts').planNetworks;

async function attempt(work: () => Promise<object>): Promise<string> {
  try {
    return toText(await work());
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    return toText({ failed: error.name, message: error.message });
  }
}

function toText(document: object): string {
  return `${toJson(document)}\n`;
}
