import type { DoctorTools } from '../app/doctor/examination.ts';
import { CpnError } from '../core/errors.ts';
import { redact } from '../core/redact.ts';
import { packTar } from '../core/tar.ts';
import { escapeUnshapely } from './json-text.ts';
import { diagnosesToJson } from './show-diagnoses.ts';
import { explanationToJson } from './show-explanation.ts';
import { statusToJson } from './show-status.ts';
import { version } from './version.ts';

/** What somebody who is to help needs to see of this host, by file name; no secret is in any of it. */
export type Bundle = ReadonlyMap<string, string>;

/** Gathers it. What cannot be had says why in its own file, and keeps nothing else away. */
export async function gatherBundle(tools: DoctorTools): Promise<Bundle> {
  const [{ describeStates }, { examine }, { readStatus }, { planNetworks }, { explainAddress }] = await Promise.all([
    import('../app/describe-states.ts'),
    import('../app/doctor/examine.ts'),
    import('../app/status.ts'),
    import('../app/reconcile.ts'),
    import('../app/explain.ts'),
  ]);
  const { states, secrets, peers } = await describeStates(tools);
  const files = new Map<string, string>([
    ['version.json', toText({ cpn: version, node: process.versions, platform: process.platform, arch: process.arch })],
    ['doctor.json', await attempt(async () => diagnosesToJson(await examine(tools)))],
    ['status.json', await attempt(async () => ({ networks: (await readStatus(tools)).map(statusToJson) }))],
    ['plan.json', await attempt(async () => ({ networks: (await planNetworks(tools)).map(tellPass) }))],
  ]);
  for (const [link, state] of states) files.set(`state/${link}.json`, toText(state));
  for (const address of peers) {
    files.set(
      `explain/${address.replaceAll(':', '_')}.json`,
      await attempt(async () => explanationToJson(await explainAddress(tools, address))),
    );
  }
  for (const [name, text] of await tools.inspector.prints()) files.set(`host/${name}`, text);
  return new Map([...files].map(([name, text]) => [name, redact(text, secrets)]));
}

/** The archive of a bundle, before it is compressed. */
export function packBundle(bundle: Bundle, now: Date): Uint8Array {
  const entries = [...bundle].map(([name, text]) => ({ path: `cpn-debug/${name}`, content: Buffer.from(text) }));
  return packTar(entries, Math.floor(now.getTime() / 1000));
}

function tellPass({ interface: link, changes, unsynced, failure }: Awaited<ReturnType<Planning>>[number]) {
  return { interface: link, changes, unsynced: unsynced?.message ?? null, failure: failure?.message ?? null };
}

type Planning = typeof import('../app/reconcile.ts').planNetworks;

async function attempt(work: () => Promise<object>): Promise<string> {
  try {
    return toText(await work());
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    return toText({ failed: error.name, message: error.message });
  }
}

function toText(document: object): string {
  return `${escapeUnshapely(JSON.stringify(document, null, 2))}\n`;
}
