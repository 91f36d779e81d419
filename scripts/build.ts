/** Builds the program: `dist/cpn.js` and `dist/start.cjs`, which start it, and `dist/main.cjs` with the parts that it loads when they are needed. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { rolldown } from 'rolldown';
import { collectNotices, findPackages } from '../packaging/licences.ts';
import { dist, manifest, root } from '../packaging/source.ts';

const { version } = manifest;

/**
 * Parts that are one file each: what `cpn` alone needs, what the table of commands needs in addition, and what those commands need that
 * people wait for. A file costs a quarter of a millisecond, and these would be 90. What main imports itself is in none of them.
 */
const entries: Readonly<Record<string, readonly string[]>> = {
  main: ['src/main.ts'],
  start: ['src/cli/output/start-screen.ts', 'src/host/open-host.ts', 'src/store/files/folder.ts'],
  commands: readdirSync(join(root, 'src/cli/commands')).map((file) => `src/cli/commands/${file}`),
  hot: [
    ...['src/host/linux/linux-host.ts', 'src/store/file-store.ts', 'node_modules/execa/index.js'],
    ...['status/status', 'reconcile/reconcile', 'leave/former-networks'].map((name) => `src/app/${name}.ts`),
  ],
};
/** The part that each module is in: the first one that reaches it by static imports. */
const partOf = new Map<string, string>();

const bundle = await rolldown({
  cwd: root,
  input: { main: 'src/main.ts' },
  platform: 'node',
  preserveEntrySignatures: 'allow-extension',
  resolve: {
    alias: {
      'string-width': join(root, 'src/cli/parse/plain-width.ts'),
      undici$: join(root, 'packaging/lean-undici.cjs'),
    },
  },
  transform: {
    target: 'node22',
    define: {
      __CPN_VERSION__: JSON.stringify(version),
      // As in undici's own build for Node: without its second parser of HTTP/1.
      esbuildDetection: '1',
      'import.meta.url': 'cpnFileUrl',
      'import.meta.dirname': '__dirname',
    },
  },
  checks: { ineffectiveDynamicImport: false, emptyImportMeta: false },
  onLog: (level, log, handle) => handle(log.code === 'UNRESOLVED_IMPORT' ? 'error' : level, log),
  plugins: [
    {
      name: 'no HTTP/2',
      // No request uses it, and Node's own module of it would take 2 MiB of a daemon's memory.
      load: (id) => (id.endsWith('/undici/lib/dispatcher/client-h2.js') ? 'module.exports = null' : null),
    },
    {
      name: 'parts',
      buildEnd() {
        const add = (id: string, part: string): void => {
          if (partOf.has(id)) return;
          partOf.set(id, part);
          for (const each of this.getModuleInfo(id)?.importedIds ?? []) add(each, part);
        };
        for (const [part, paths] of Object.entries(entries)) for (const path of paths) add(join(root, path), part);
      },
    },
  ],
});
const { output } = await bundle.generate({
  // CommonJS, which Node loads without its loader of modules: that costs 2 ms for each module of Node's own, and more for some.
  format: 'cjs',
  // Names stay, for stack traces and for errors that are identified by name.
  minify: { mangle: false, compress: true, codegen: { removeWhitespace: true } },
  comments: { legal: false },
  banner: "const cpnFileUrl=require('node:url').pathToFileURL(__filename).href;",
  entryFileNames: '[name].cjs',
  chunkFileNames: 'parts/[name]-[hash].cjs',
  codeSplitting: {
    includeDependenciesRecursively: false,
    groups: ['start', 'commands', 'hot'].map((name) => ({ name, test: (id: string) => partOf.get(id) === name })),
  },
});
await bundle.close();
const chunks = output.filter((each) => each.type === 'chunk');
const inputs = chunks.flatMap(({ moduleIds }) => moduleIds.map((id) => relative(root, id)));
const notices = collectNotices(root, findPackages(inputs));

// A build that fails leaves the last one as it was.
rmSync(dist, { recursive: true, force: true });
for (const { fileName, name, code } of chunks) {
  const path = join(dist, fileName);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, inAscii(requireBuiltins(name in entries ? loadLate(code) : code)));
}
copyFileSync(join(root, 'packaging', 'cpn.js'), join(dist, 'cpn.js'));
chmodSync(join(dist, 'cpn.js'), 0o755);
const build = createHash('sha256')
  .update(JSON.stringify(chunks.map(({ code }) => code)))
  .digest('hex')
  .slice(0, 16);
for (const file of ['start.cjs', 'load.cjs', 'compile.cjs']) {
  const text = readFileSync(join(root, 'packaging', file), 'utf8');
  writeFileSync(join(dist, file), text.replace('@VERSION@', version).replace('@BUILD@', build));
}
writeFileSync(join(dist, 'NOTICE'), notices);

execFileSync(process.execPath, [join(dist, 'compile.cjs')], { stdio: ['ignore', 'inherit', 'inherit'] });

const total = chunks.reduce((sum, { code }) => sum + code.length, 0);
process.stdout.write(`dist: cpn ${version}, ${chunks.length + 3} files, ${Math.round(total / 1024)} KiB\n`);

/**
 * The same part, with those of Node's own modules that take time loaded when they are first used: a part has what any of its modules needs
 * of them. What the bundler copies at the start of a part stays as it is.
 */
function loadLate(code: string): string {
  const names = 'child_process|crypto|dgram|dns/promises|http|net|zlib';
  const late = code.replace(
    new RegExp(`(\\w+)=require\\("node:(${names})"\\)`, 'g'),
    (whole, name: string, id: string) =>
      new RegExp(`\\b${name}=[\\w.]+\\(${name},1\\)`).test(code) ? whole : `${name}=builtin("node:${id}")`,
  );
  return `const builtin=(id)=>{let loaded;return new Proxy({},{get:(_,name)=>(loaded??=require(id))[name]})};${late}`;
}

/** The same program, with Node's own modules required: to import them, a script that Node did not load itself needs an experimental API. */
function requireBuiltins(code: string): string {
  return code.replace(/\bimport\((["'`])(node:[\w/]+)\1\)/g, 'Promise.resolve().then(()=>require("$2"))');
}

/**
 * The same program, with what is outside of ASCII escaped: V8 holds a source as long as its functions may be needed, with two bytes for
 * each letter where a single one takes two, and its code is read as ASCII.
 */
function inAscii(code: string): string {
  return code.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
