import {
  chmodSync,
  cpSync,
  existsSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { completionFor } from '../src/cli/commands/completion.ts';
import { loadCommands } from '../src/cli/parse/commands.ts';
import type { Architecture } from './architecture.ts';
import { command } from './command.ts';
import { manualPages } from './manual/pages.ts';
import { findNode } from './private-node.ts';
import { dist, manifest, root, sourceDate } from './source.ts';

const commands = await loadCommands();

/**
 * The units that a package brings, by their file names: those of `packaging/systemd`, whatever is
 * there.
 */
export function listUnits(): string[] {
  const folder = join(root, 'packaging', 'systemd');
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => /\.(service|socket|timer|path|target)$/.test(file))
    .sort();
}

/**
 * Writes the files that are the same on every system below a folder, as they come to be below `/`.
 */
export async function writeTree(tree: string, architecture: Architecture): Promise<void> {
  const put = (path: string, content: string | Uint8Array, mode = 0o644) => {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    writeFileSync(join(tree, path), content);
    chmodSync(join(tree, path), mode);
  };
  const copy = (from: string, path: string, mode?: number) => put(path, readFileSync(join(root, from)), mode);

  copy('packaging/cpn.sh', 'usr/bin/cpn', 0o755);
  const lib = join(tree, 'usr/lib/cpn');
  mkdirSync(lib, { recursive: true });
  for (const part of ['start.cjs', 'load.cjs', 'compile.cjs', 'main.cjs', 'parts', 'console']) {
    cpSync(join(dist, part), join(lib, part), { recursive: true });
  }
  put('usr/lib/cpn/package.json', '{"type":"module"}\n');
  const { node } = findNode(architecture);
  // What remains runs alike and is 18 MB smaller. The strip of the architecture itself: this
  // machine may be another one.
  command([`${architecture.rpm}-linux-gnu-strip`, '-o', join(lib, 'node'), node]);
  chmodSync(join(lib, 'node'), 0o755);

  put('usr/share/bash-completion/completions/cpn', await completionFor('bash', commands));
  put('usr/share/zsh/vendor-completions/_cpn', await completionFor('zsh', commands));
  put('usr/share/fish/vendor_completions.d/cpn.fish', await completionFor('fish', commands));
  const date = new Date(sourceDate() * 1000).toISOString().slice(0, 10);
  for (const [file, page] of manualPages(commands, { version: manifest.version, date })) {
    put(`usr/share/man/man1/${file}.gz`, gzip(page));
  }
  copy('packaging/networkd/10-cpn.network', 'usr/lib/systemd/network/10-cpn.network');
  copy('packaging/network-manager/20-cpn.conf', 'usr/lib/NetworkManager/conf.d/20-cpn.conf');
  for (const example of readdirSync(join(root, 'packaging/examples')).sort()) {
    copy(`packaging/examples/${example}`, `usr/share/doc/cpn/examples/${example}`);
  }
  for (const file of readdirSync(join(root, 'packaging/monitoring')).sort()) {
    copy(`packaging/monitoring/${file}`, `usr/share/cpn/monitoring/${file}`);
  }
  for (const unit of listUnits()) copy(`packaging/systemd/${unit}`, `usr/lib/systemd/system/${unit}`);
}

/**
 * The licences of what is in a package, by the names of their files: ours, of the packages in the
 * bundle, and of Node.
 */
export function listLicences(architecture: Architecture): Readonly<Record<string, string>> {
  const { version, licence } = findNode(architecture);
  const own = readFileSync(join(root, 'LICENSE'), 'utf8');
  const others = [
    'cpn, a WireGuard connector for private networks, is under this licence:\n',
    own,
    'It contains parts of other packages, whose licences are in NOTICE next to this file.\n',
    `/usr/lib/cpn/node is Node.js ${version} of the npm package node-linux-${architecture.node}, copyright Node.js contributors;`,
    'its licence and those of its libraries are in LICENSE.node next to this file.\n',
  ];
  return {
    copyright: others.join('\n'),
    NOTICE: readFileSync(join(dist, 'NOTICE'), 'utf8'),
    'LICENSE.node': readFileSync(licence, 'utf8'),
  };
}

/** Compressed as gzip -9n does: nothing of the time or the name stays in it. */
export function gzip(text: string): Uint8Array {
  return gzipSync(text, { level: 9 });
}

/** Gives every folder and file below a tree fixed modes and the time of the sources. */
export function settle(tree: string): void {
  const entries = readdirSync(tree, { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory()) chmodSync(path, 0o755);
    else if (entry.name.endsWith('.cjs')) chmodSync(path, 0o644);
    lutimesSync(path, sourceDate(), sourceDate());
  }
  if (existsSync(tree)) {
    chmodSync(tree, 0o755);
    lutimesSync(tree, sourceDate(), sourceDate());
  }
}
