/**
 * Loads the parts of the program, with the code that V8 made of them when the program was installed: see compile.cjs. V8 itself
 * refuses code of another build of V8, or of other flags; the name of the folder refuses code of another build of the program.
 */
const { readFileSync } = require('node:fs');
const Module = require('node:module');
const { dirname, basename, join } = require('node:path');
const { Script } = require('node:vm');

/** Where compile.cjs keeps the code, for which it receives each script; the program itself keeps none of them. */
const loader = { folder: join(__dirname, 'compiled', '@BUILD@'), onLoad: null };

Module._extensions['.cjs'] = (module, filename) => {
  const script = new Script(Module.wrap(readFileSync(filename, 'latin1')), {
    filename,
    cachedData: process.execArgv.length === 0 ? readCode(filename) : undefined,
  });
  loader.onLoad?.(filename, script);
  const require = (id) => module.require(id);
  script.runInThisContext().call(module.exports, module.exports, require, module, filename, dirname(filename));
};

function readCode(filename) {
  try {
    return readFileSync(join(loader.folder, `${basename(filename)}.bin`));
  } catch {
    // Nothing was compiled here.
  }
}

module.exports = loader;
