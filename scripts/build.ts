/** Builds the program: `dist/cpn.js` and `dist/start.cjs`, which start it, and `dist/main.cjs` with the parts that it loads when they are needed. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { rolldown } from 'rolldown';
import { collectNotices, findPackages } from '../packaging/licences.ts';
import { dist, manifest, root } from '../packaging/source.ts';
import { buildConsole } from './build-console.ts';

const { version } = manifest;

const tools = ['src/host/linux/linux-host.ts', 'src/store/file-store.ts', 'node_modules/execa/index.js'];
/**
 * What is loaded always, by `cpn` alone, for the table of commands, by `cpn status` and by `cpn up`. A file of the program has the modules
 * that the same of these need: a file costs a quarter of a millisecond, and these would be 90.
 */
const uses: Readonly<Record<string, readonly string[]>> = {
  main: ['src/main.ts'],
  start: ['src/cli/output/start-screen.ts', 'src/host/open-host.ts', 'src/store/files/folder.ts'],
  commands: readdirSync(join(root, 'src/cli/commands')).map((file) => `src/cli/commands/${file}`),
  status: ['src/cli/commands/status.ts', 'src/app/status/status.ts', 'src/app/networks/former-networks.ts', ...tools],
  up: ['src/cli/commands/up.ts', 'src/app/networks/up.ts', ...tools],
};
/** The part of each module: the names of its uses, or the first two alone, because whatever uses it has them too. */
const partOf = new Map<string, string>();

/** Files of execa that would open the three standard streams of each command: what they have for it, and what opens none in its place. */
const streams = '[process.stdin, process.stdout, process.stderr]';
const ask = 'const getStandardStreamDirection = value => {';
const lateStreams = [
  ['/execa/lib/utils/standard-stream.js', streams, `new Proxy([], { get: (_, name) => ${streams}[name] })`],
  ['/execa/lib/stdio/direction.js', ask, `${ask} if (typeof value !== 'object') return KNOWN_DIRECTIONS[value];`],
] as const;

/** undici's parsers of HTTP/1, by the names of their files. */
const parsers = new Map<string, Buffer>();

const bundle = await rolldown({
  cwd: root,
  input: { main: 'src/main.ts' },
  platform: 'node',
  preserveEntrySignatures: 'allow-extension',
  resolve: {
    alias: {
      'string-width': join(root, 'src/cli/parse/plain-width.ts'),
      'ip-cidr$': join(root, 'packaging/late-ip-cidr.cjs'),
      tweetnacl$: join(root, 'packaging/late-tweetnacl.cjs'),
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
      name: 'late streams',
      transform(code, id) {
        const [, from, to] = lateStreams.find(([path]) => id.endsWith(path)) ?? [];
        if (from === undefined || to === undefined) return null;
        if (!code.includes(from)) throw new Error(`${id} has no ${from}`);
        return code.replace(from, to);
      },
    },
    {
      name: 'parser as a file',
      // As a text in the program, and as what undici makes of it, the compiled parser would stay in memory twice.
      load: (id) => {
        const [, name] = /\/undici\/lib\/llhttp\/(\w+)-wasm\.js$/.exec(id) ?? [];
        if (name === undefined) return null;
        parsers.set(`${name}.wasm`, createRequire(id)(id));
        const read = `require('node:fs').readFileSync(require('node:path').join(__dirname, '${name}.wasm'))`;
        return `Object.defineProperty(module, 'exports', { get: () => ${read} })`;
      },
    },
    {
      name: 'parts',
      buildEnd() {
        const reach = (path: string, reached: Set<string>): void => {
          if (reached.has(path) || ['main', 'start'].includes(partOf.get(path) ?? '')) return;
          reached.add(path);
          for (const each of this.getModuleInfo(path)?.importedIds ?? []) reach(each, reached);
        };
        for (const [use, paths] of Object.entries(uses)) {
          const reached = new Set<string>();
          for (const path of paths) reach(join(root, path), reached);
          for (const path of reached) partOf.set(path, [partOf.get(path) ?? [], use].flat().join('-'));
        }
      },
    },
  ],
});
const { output } = await bundle.generate({
  // CommonJS, which Node loads without its loader of modules: that costs 2 ms for each module of Node's own, and more for some.
  format: 'cjs',
  // Names stay, for stack traces and for errors that are identified by name.
  minify: { mangle: { keepNames: true }, compress: true, codegen: { removeWhitespace: true } },
  comments: { legal: false },
  banner: "const cpnFileUrl=require('node:url').pathToFileURL(__filename).href;",
  entryFileNames: '[name].cjs',
  chunkFileNames: 'parts/[name]-[hash].cjs',
  codeSplitting: {
    includeDependenciesRecursively: false,
    groups: [{ name: (id) => partOf.get(id) ?? null, debugName: 'parts' }],
  },
});
await bundle.close();
const parts = new Set(partOf.values());
const chunks = output.filter((each) => each.type === 'chunk');
const inputs = chunks.flatMap(({ moduleIds }) => moduleIds.map((id) => relative(root, id)));
const console = await buildConsole(root);
const notices = collectNotices(root, findPackages([...inputs, ...console.inputs]));

// A build that fails leaves the last one as it was.
rmSync(dist, { recursive: true, force: true });
for (const { fileName, name, code } of chunks) {
  const path = join(dist, fileName);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, inAscii(requireBuiltins(parts.has(name) ? loadLate(code) : code)));
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
for (const [name, parser] of parsers) writeFileSync(join(dist, 'parts', name), parser);
mkdirSync(join(dist, 'console/assets'), { recursive: true });
for (const [name, content] of console.files) writeFileSync(join(dist, 'console', name), content);

execFileSync(process.execPath, [join(dist, 'compile.cjs')], { stdio: ['ignore', 'inherit', 'inherit'] });

const total = chunks.reduce((sum, { code }) => sum + code.length, 0);
process.stdout.write(
  `dist: cpn ${version}, ${chunks.length + 3} files, ${Math.round(total / 1024)} KiB; console ${Math.ceil(console.bytes / 1024)} KiB compressed\n`,
);

/**
 * The same part, with those of Node's own modules that take time loaded when they are first used: a part has what any of its modules needs
 * of them. To require node:process would open the three standard streams. Where a module is imported as a whole, the bundler copies it.
 */
function loadLate(code: string): string {
  const names = 'child_process|crypto|dgram|dns/promises|fs/promises|http|net|os|process|timers/promises|tty|v8|zlib';
  const late = code.replace(
    new RegExp(`(\\w+)=require\\("node:(${names})"\\)(;\\1=[\\w.]+\\(\\1,1\\))?`, 'g'),
    (_, name: string, id: string) => `${name}=builtin(()=>${id === 'process' ? id : `require("node:${id}")`})`,
  );
  const get = "(_,name)=>{loaded??=load();return name==='default'?loaded:loaded[name]}";
  return `const builtin=(load)=>{let loaded;return new Proxy({},{get:${get}})};${late}`;
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
