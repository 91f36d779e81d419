/**
 * Loads the parts of the program, with the code that V8 made of them when the program was installed: see compile.cjs. V8 itself
 * refuses code of another build of V8, or of other flags; the name of the folder refuses code of another build of the program.
 * Node's own loader would search the disk for each part first.
 */
const { readFileSync } = require('node:fs');
const { wrap } = require('node:module');
const { basename, join } = require('node:path');
const { Script } = require('node:vm');

/**
 * Node's own modules that are loaded at their first use. `cpn status` needs none of them, and
 * loading all takes 7 % of its processor time. tweetnacl tests for `randomBytes` while it is
 * loaded.
 */
const late = {
  crypto: loadLate('node:crypto', { randomBytes: (size) => require('node:crypto').randomBytes(size) }),
  'node:crypto': loadLate('node:crypto'),
  'node:v8': loadLate('node:v8'),
  // To require it would open the three standard streams: Node reads each of its properties.
  'node:process': process,
};

function loadLate(id, known = {}) {
  return new Proxy(known, {
    get: (_, name) => known[name] ?? require(id)[name],
    ownKeys: () => Reflect.ownKeys(require(id)),
    getOwnPropertyDescriptor: (_, name) => ({
      ...Reflect.getOwnPropertyDescriptor(require(id), name),
      configurable: true,
    }),
  });
}

/** Where compile.cjs keeps the code, for which it receives each script; the program itself keeps none of them. */
const loader = { folder: join(__dirname, 'compiled', '@BUILD@'), onLoad: null, load };

/** V8 refuses code of other flags, but for this one. */
const takesCode = process.execArgv.every((flag) => flag.startsWith('--max-semi-space-size='));

/** What a file of the program exports, such as `./main.cjs`. Its parts name each other from their own folder. */
function load(path, folder = __dirname) {
  const filename = join(folder, path);
  const known = require.cache[filename];
  if (known !== undefined) return known.exports;
  const script = new Script(wrap(readFileSync(filename, 'latin1')), {
    filename,
    cachedData: takesCode ? readCode(filename) : undefined,
  });
  loader.onLoad?.(filename, script);
  const module = { id: filename, filename, exports: {} };
  require.cache[filename] = module;
  const own = filename.slice(0, -basename(filename).length);
  const requirePart = (id) => (id.startsWith('.') ? load(id, own) : (late[id] ?? require(id)));
  script.runInThisContext().call(module.exports, module.exports, requirePart, module, filename, own);
  return module.exports;
}

function readCode(filename) {
  try {
    return readFileSync(join(loader.folder, `${basename(filename)}.bin`));
  } catch {
    // Nothing was compiled here.
  }
}

module.exports = loader;
