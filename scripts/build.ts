/**
 * Builds the program: `dist/cpn.js` and `dist/start.cjs`, which start it, and `dist/main.cjs` with
 * the parts that it loads when they are needed.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { rolldown } from 'rolldown';
import { collectNotices, findPackages } from '../packaging/licences.ts';
import { checkOriginals, patches } from '../packaging/patches/patches.ts';
import { dist, manifest, root } from '../packaging/source.ts';
import { buildConsole } from './build-console.ts';

const { version } = manifest;
checkOriginals(join(root, 'node_modules'));

const tools = ['src/host/linux/linux-host.ts', 'src/store/file-store.ts', 'node_modules/execa/index.js'];
/**
 * What is loaded always, by `cpn` alone, for the table of commands, by `cpn status` and by `cpn
 * up`. One file has the modules that the same of these need. Without these groups `cpn status`
 * takes 10 to 25 % more processor time, and `cpn --help` 28 %.
 */
const uses: Readonly<Record<string, readonly string[]>> = {
  main: ['src/main.ts'],
  start: ['src/cli/output/start-screen.ts', 'src/host/open-host.ts', 'src/store/files/folder.ts'],
  commands: readdirSync(join(root, 'src/cli/commands')).map((file) => `src/cli/commands/${file}`),
  status: ['src/cli/commands/status.ts', 'src/app/status/status.ts', 'src/app/networks/former-networks.ts', ...tools],
  up: ['src/cli/commands/up.ts', 'src/app/networks/up.ts', ...tools],
};
/**
 * The part of each module: the names of its uses, or the first two alone, because whatever uses it
 * has them too.
 */
const partOf = new Map<string, string>();

const bundle = await rolldown({
  cwd: root,
  input: { main: 'src/main.ts' },
  platform: 'node',
  preserveEntrySignatures: 'allow-extension',
  resolve: { alias: patches },
  transform: {
    target: 'node22',
    define: {
      __CPN_VERSION__: JSON.stringify(version),
      // As in undici's own build for Node: without its second parser of HTTP/1, 3 MiB of a daemon's
      // memory.
      esbuildDetection: '1',
    },
  },
  checks: { ineffectiveDynamicImport: false, emptyImportMeta: false },
  onLog: (level, log, handle) => handle(log.code === 'UNRESOLVED_IMPORT' ? 'error' : level, log),
  plugins: [
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
          for (const path of paths) {
            // The bundler names a module by its real path: node_modules may be a link.
            const file = realpathSync(join(root, path));
            if (this.getModuleInfo(file) === null) throw new Error(`the use ${use} names ${path}, which is in no part`);
            reach(file, reached);
          }
          for (const path of reached) partOf.set(path, [partOf.get(path) ?? [], use].flat().join('-'));
        }
      },
    },
  ],
});
const { output } = await bundle.generate({
  // Node loads CommonJS without its ES module loader, which takes 2 ms for each built-in module.
  format: 'cjs',
  // Names stay, for stack traces and for errors that are identified by name.
  minify: { mangle: { keepNames: true }, compress: true, codegen: { removeWhitespace: true } },
  comments: { legal: false },
  // load.cjs reads the files as Latin-1. V8 keeps a source with other letters as UTF-16, which is
  // twice as large.
  charset: 'ascii',
  // A vm.Script can import() modules only by an experimental API of Node.
  dynamicImportInCjs: false,
  entryFileNames: '[name].cjs',
  chunkFileNames: 'parts/[name]-[hash].cjs',
  codeSplitting: {
    includeDependenciesRecursively: false,
    groups: [{ name: (id) => partOf.get(id) ?? null, debugName: 'parts' }],
  },
});
await bundle.close();
const chunks = output.filter((each) => each.type === 'chunk');
const inputs = chunks.flatMap(({ moduleIds }) => moduleIds.map((id) => relative(root, id)));
const console = await buildConsole(root);
const notices = collectNotices(root, findPackages([...inputs, ...console.inputs]));

// A build that fails leaves the last one as it was.
rmSync(dist, { recursive: true, force: true });
for (const { fileName, code } of chunks) {
  const path = join(dist, fileName);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, code);
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
mkdirSync(join(dist, 'console/assets'), { recursive: true });
for (const [name, content] of console.files) writeFileSync(join(dist, 'console', name), content);

execFileSync(process.execPath, [join(dist, 'compile.cjs')], { stdio: ['ignore', 'inherit', 'inherit'] });

const total = chunks.reduce((sum, { code }) => sum + code.length, 0);
process.stdout.write(
  `dist: cpn ${version}, ${chunks.length + 3} files, ${Math.round(total / 1024)} KiB; console ${Math.ceil(console.bytes / 1024)} KiB compressed\n`,
);
