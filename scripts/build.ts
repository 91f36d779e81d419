/** Builds the program: `dist/cpn.js` and `dist/start.cjs`, which start it, and `dist/main.js` with the parts that it loads when they are needed. */
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build } from 'esbuild';
import { collectNotices, findPackages } from '../packaging/licences.ts';
import { dist, manifest, root } from '../packaging/source.ts';

const { version } = manifest;

const { outputFiles, metafile } = await build({
  absWorkingDir: root,
  entryPoints: ['src/main.ts'],
  outdir: dist,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node22',
  // Names stay, for stack traces and for errors that are told apart by theirs.
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
  define: { __CPN_VERSION__: JSON.stringify(version) },
  banner: {
    // For the CommonJS packages inside, which require Node's own modules.
    js: "import{createRequire as cpnRequire}from'node:module';const require=cpnRequire(import.meta.url);",
  },
  chunkNames: 'parts/[name]-[hash]',
  write: false,
  metafile: true,
  logLevel: 'warning',
});

const notices = collectNotices(root, findPackages(Object.keys(metafile.inputs)));

// A build that fails leaves the last one as it was.
rmSync(dist, { recursive: true, force: true });
for (const { path, contents } of outputFiles) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, contents);
}
copyFileSync(join(root, 'packaging', 'cpn.js'), join(dist, 'cpn.js'));
chmodSync(join(dist, 'cpn.js'), 0o755);
const start = readFileSync(join(root, 'packaging', 'start.cjs'), 'utf8');
writeFileSync(join(dist, 'start.cjs'), start.replace('@VERSION@', version));
writeFileSync(join(dist, 'NOTICE'), notices);

const total = outputFiles.reduce((sum, { contents }) => sum + contents.length, 0);
process.stdout.write(`dist: cpn ${version}, ${outputFiles.length + 3} files, ${Math.round(total / 1024)} KiB\n`);
