/**
 * Checks that imports run in one direction only, as the table below says: main → cli → app → adapters → core, and the control plane
 * beside them. Prints each import that doesn't, and then exits with 1.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { styleText } from 'node:util';

/**
 * What the files of one place may import: a folder ends in a slash, everything else is a file or a package. Files
 * below one folder of `src` may always import each other. `node:` is all of Node but for {@link NAMED_ONLY}.
 */
interface Rule {
  readonly files: string;
  readonly may: readonly string[];
  /** May be imported as types, with `import type`. */
  readonly types?: readonly string[];
  /** May be imported when it is needed, with `import()`. */
  readonly lazily?: readonly string[];
}

/** Parts of Node that `node:` doesn't stand for. */
const NAMED_ONLY = ['node:child_process', 'node:cluster', 'node:sqlite', 'node:worker_threads'];

const CLI = ['src/core/', 'src/app/', 'node:'];
const ADAPTERS = ['src/api/', 'src/store/', 'src/host/'];

/** The first row whose `files` a file is in counts. */
const TABLE: readonly Rule[] = [
  { files: 'src/main.ts', may: ['src/cli/'] },

  // These make the adapters, the login's file is the administrator's own, and only one command knows the control plane.
  { files: 'src/cli/context.ts', may: CLI, types: ADAPTERS, lazily: ADAPTERS },
  { files: 'src/cli/admin.ts', may: CLI, types: ADAPTERS, lazily: ADAPTERS },
  { files: 'src/cli/log.ts', may: [...CLI, 'pino'] },
  { files: 'src/cli/commands/control-plane.ts', may: CLI, lazily: ['src/control-plane/', 'pino'] },
  { files: 'src/cli/metrics/', may: [...CLI, 'prom-client'] },
  {
    files: 'src/cli/',
    may: [...CLI, 'yargs', '@clack/prompts', 'uqr'],
    types: ['src/contract/', ...ADAPTERS],
    lazily: ['src/store/login-file.ts'],
  },

  {
    files: 'src/app/',
    may: ['src/core/', 'node:net', 'node:crypto'],
    types: [
      'src/contract/',
      'src/api/service.ts',
      'src/host/host.ts',
      'src/host/inspector.ts',
      'src/host/supervisor.ts',
      'src/store/',
    ],
  },

  { files: 'src/api/', may: ['src/contract/', 'src/core/', 'undici', 'zod', 'node:'] },
  { files: 'src/store/lock.ts', may: ['src/core/', 'node:', 'node:sqlite'] },
  { files: 'src/store/', may: ['src/core/', 'zod', 'node:'], types: ['src/contract/'] },
  { files: 'src/host/run.ts', may: ['src/core/', 'execa', 'node:', 'node:child_process'] },
  { files: 'src/host/', may: ['src/core/', 'node:'] },

  {
    files: 'src/control-plane/',
    may: [
      'src/contract/',
      'src/core/',
      'fastify',
      'fastify-type-provider-zod',
      '@fastify/rate-limit',
      '@fastify/swagger',
      'kysely',
      'pg',
      'pino',
      'prom-client',
      'zod',
      'node:',
      'node:sqlite',
    ],
  },

  // HKDF, Ed25519, X25519 and SHA-512 are pure functions of what they are given, and none that we should write ourselves.
  { files: 'src/core/keys.ts', may: ['src/core/', 'node:crypto', 'tweetnacl'] },
  { files: 'src/core/identity.ts', may: ['src/core/', 'node:crypto'] },
  { files: 'src/core/digest.ts', may: ['node:crypto'] },
  { files: 'src/core/network-secret.ts', may: ['src/core/', 'node:crypto'] },
  { files: 'src/core/', may: ['ip-cidr', 'node:net', 'node:util'], types: ['src/contract/'] },
  { files: 'src/contract/', may: ['zod'] },
];

type Way = 'value' | 'type' | 'lazy';

interface Import {
  readonly line: number;
  readonly target: string;
  readonly way: Way;
}

const STATEMENT = /^\s*(?:import|export)\s+(type\s)?[^'"`;=]*?\bfrom\s*['"]([^'"]+)['"]/gm;
const BARE = /^\s*import\s*['"]([^'"]+)['"]/gm;
const CALL = /\bimport\(\s*(?:['"]([^'"]+)['"])?/g;

/** Finds what a file imports, and how. A computed `import(…)` shows as the target `(computed)`. */
function findImports(file: string, text: string): Import[] {
  const found = (match: RegExpExecArray, target: string, way: Way): Import => ({
    line: text.slice(0, match.index + match[0].length).split('\n').length,
    target: target.startsWith('.') ? join(dirname(file), target) : packageOf(target),
    way,
  });
  return [
    ...[...text.matchAll(STATEMENT)].map((match) => found(match, match[2] ?? '', match[1] ? 'type' : 'value')),
    ...[...text.matchAll(BARE)].map((match) => found(match, match[1] ?? '', 'value')),
    ...[...text.matchAll(CALL)].map((match) => found(match, match[1] ?? '(computed)', 'lazy')),
  ];
}

/** `kysely/migration` is a part of `kysely`, and `node:fs/promises` of `node:fs`. */
function packageOf(target: string): string {
  const parts = target.split('/');
  return parts.slice(0, target.startsWith('@') ? 2 : 1).join('/');
}

function isAllowed({ target, way }: Import, rule: Rule): boolean {
  const [, folder] = rule.files.split('/');
  const allowed = [`src/${folder}/`, ...rule.may];
  if (way === 'type') allowed.push(...(rule.types ?? []), ...(rule.lazily ?? []));
  if (way === 'lazy') allowed.push(...(rule.lazily ?? []));
  return allowed.some((each) => {
    if (each === 'node:') return target.startsWith(each) && !NAMED_ONLY.includes(target);
    return each.endsWith('/') ? target.startsWith(each) : target === each;
  });
}

/** Checks all files in `src` under this folder, and returns a line for a person on each import that the table doesn't allow. */
export function checkImports(root: string): string[] {
  const files = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.[cm]?[jt]s$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
  return files.flatMap((file) => {
    const rule = TABLE.find(({ files: place }) => (place.endsWith('/') ? file.startsWith(place) : file === place));
    if (rule === undefined) return [`${file}: scripts/check-imports.ts has no rule for this place`];
    return findImports(file, readFileSync(join(root, file), 'utf8'))
      .filter((each) => !isAllowed(each, rule))
      .map(({ line, target, way }) => `${file}:${line}: ${rule.files} may not import ${target}${manner[way]}`);
  });
}

const manner: Readonly<Record<Way, string>> = { value: '', type: ', not even its types', lazy: ', not even lazily' };

if (import.meta.main) {
  const wrong = checkImports(process.argv[2] ?? join(import.meta.dirname, '..'));
  for (const line of wrong) process.stdout.write(`${line}\n`);
  if (wrong.length > 0) process.stdout.write(styleText('red', `${wrong.length} imports in the wrong direction\n`));
  process.exitCode = wrong.length > 0 ? 1 : 0;
}
