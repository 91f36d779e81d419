import { createHash } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, readSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Architecture, readMachine } from './architecture.ts';
import { command } from './command.ts';
import { root } from './source.ts';

/** A Node as npm carries it: `node` is the program, `licence` its licence and that of all that is in it. */
export interface PrivateNode {
  readonly version: string;
  readonly node: string;
  readonly licence: string;
}

/** The Node that package-lock.json names for an architecture: npm's own installation where it is this machine's, else fetched. */
export function findNode(architecture: Architecture): PrivateNode {
  const name = `node-linux-${architecture.node}`;
  const { version, integrity } = readLock(name);
  const installed = join(root, 'node_modules', name);
  const folder = isVersion(installed, version) ? installed : fetchNode(name, version, integrity);
  const node = join(folder, 'bin', 'node');
  const machine = readMachine(readHead(node));
  if (machine !== architecture.machine) {
    throw new Error(`${node} is for machine ${machine}, and ${architecture.debian} is ${architecture.machine}`);
  }
  return { version, node, licence: join(folder, 'LICENSE') };
}

function readLock(name: string): { version: string; integrity: string } {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly version: string; readonly integrity: string }>>;
  };
  const locked = lock.packages[`node_modules/${name}`];
  if (locked === undefined) throw new Error(`package-lock.json does not name ${name}`);
  return locked;
}

function isVersion(folder: string, version: string): boolean {
  const file = join(folder, 'package.json');
  return existsSync(file) && (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version === version;
}

/** npm installs only what is for its own machine; a package for another one is fetched alone, and checked as npm would. */
function fetchNode(name: string, version: string, integrity: string): string {
  const cache = join(root, '.cache', 'node');
  const folder = join(cache, `${name}-${version}`);
  if (isVersion(folder, version)) return folder;
  const work = `${folder}.${process.pid}`;
  mkdirSync(work, { recursive: true });
  try {
    command(['npm', 'pack', `${name}@${version}`, '--prefer-offline', '--silent', '--pack-destination', work]);
    const tarball = join(work, `${name}-${version}.tgz`);
    const [algorithm = '', digest] = integrity.split(/-(.*)/s);
    const found = createHash(algorithm).update(readFileSync(tarball)).digest('base64');
    if (found !== digest)
      throw new Error(`${name}@${version} is not what package-lock.json says: ${algorithm}-${found}`);
    const wanted = ['bin/node', 'LICENSE', 'package.json'].map((path) => `package/${path}`);
    command(['tar', '-xzf', tarball, '-C', work, '--no-same-owner', ...wanted]);
    rmSync(folder, { recursive: true, force: true });
    renameSync(join(work, 'package'), folder);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return folder;
}

/** The first bytes of a file. */
export function readHead(path: string): Uint8Array {
  const file = openSync(path, 'r');
  try {
    const head = new Uint8Array(64);
    return head.subarray(0, readSync(file, head));
  } finally {
    closeSync(file);
  }
}
