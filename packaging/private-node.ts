import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { type Architecture, readMachine } from './architecture.ts';
import { root } from './source.ts';

/** The npm package that carries Node for an architecture. */
export interface NodePackage {
  readonly name: string;
  readonly version: string;
  /** The integrity of the package's file in package-lock.json. */
  readonly integrity: string;
  /** The SHA-256 of the program in it, from node.sha256. */
  readonly sha256: string;
}

/**
 * A Node as npm carries it: `node` is the program, `licence` its licence and that of all that is in
 * it.
 */
export interface PrivateNode {
  readonly version: string;
  readonly node: string;
  readonly licence: string;
}

const verified = new Map<string, PrivateNode>();

/**
 * The Node for an architecture, once its program was verified. It was installed or fetched before:
 * nothing is downloaded here.
 *
 * @throws Error where it is missing, for another machine, or not the file that node.sha256 names
 */
export function findNode(architecture: Architecture): PrivateNode {
  const known = verified.get(architecture.node);
  if (known !== undefined) return known;
  const wanted = readNodePackage(architecture);
  const folder = locateNode(wanted);
  if (folder === undefined) throw new Error(`${wanted.name}@${wanted.version} is missing; run scripts/setup`);
  const node = join(folder, 'bin', 'node');
  checkProgram(node, wanted.sha256);
  const machine = readMachine(readHead(node));
  if (machine !== architecture.machine) {
    throw new Error(`${node} is for machine ${machine}, and ${architecture.debian} is ${architecture.machine}`);
  }
  const found = { version: wanted.version, node, licence: join(folder, 'LICENSE') };
  verified.set(architecture.node, found);
  return found;
}

/** The package for an architecture, as package-lock.json and node.sha256 name it. */
export function readNodePackage({ node }: Architecture): NodePackage {
  const name = `node-linux-${node}`;
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly version: string; readonly integrity: string }>>;
  };
  const locked = lock.packages[`node_modules/${name}`];
  if (locked === undefined) throw new Error(`package-lock.json does not name ${name}`);
  const { version, integrity } = locked;
  const file = `node-v${version}-linux-${node}/bin/node`;
  const line = readFileSync(join(import.meta.dirname, 'node.sha256'), 'utf8')
    .split('\n')
    .find((each) => each.endsWith(`  ${file}`));
  if (line === undefined) throw new Error(`packaging/node.sha256 has no sum of ${file}`);
  return { name, version, integrity, sha256: line.slice(0, 64) };
}

/**
 * The folder of a package: npm's own installation where that is for this machine, else what was
 * fetched.
 */
export function locateNode({ name, version }: NodePackage): string | undefined {
  return [join(root, 'node_modules', name), fetchedFolder({ name, version })].find((folder) => {
    const file = join(folder, 'package.json');
    return existsSync(file) && (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version === version;
  });
}

/** Where a package for another machine is kept. */
export function fetchedFolder({ name, version }: Pick<NodePackage, 'name' | 'version'>): string {
  return join(root, '.cache', 'node', `${name}-${version}`);
}

/** Refuses a program that is not the one of a sum. */
export function checkProgram(file: string, sha256: string): void {
  const found = createHash('sha256').update(readFileSync(file)).digest('hex');
  if (found !== sha256) throw new Error(`${file} has the SHA-256 ${found}, and packaging/node.sha256 says ${sha256}`);
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
