/**
 * Keeps next to the program the code that V8 makes of it, which depends on the machine: a package cannot bring it. A command then starts
 * in two thirds of the time. Installation runs this, as the user who owns the program; the program itself never writes there.
 * The commands that it rehearses read this host, and change nothing: V8 keeps only what was run.
 */
const { once } = require('node:events');
const { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } = require('node:fs');
const { createServer } = require('node:http');
const { tmpdir } = require('node:os');
const { basename, dirname, join } = require('node:path');
const loader = require('./load.cjs');
const scripts = new Map();
loader.onLoad = (filename, script) => scripts.set(filename, script);
const { runProgram } = loader.load('./main.cjs');

const rehearsed = [['status'], ['status', '--json'], ['plan'], ['explain', '192.0.2.1'], ['--help'], []];

/** A network that no host joined, on an interface that no host has. Its key was made for this file. */
const state = {
  version: 1,
  interface: 'cpn-compile',
  createdAt: '2026-01-01T00:00:00.000Z',
  privateKey: 'mMa7JW2cphJIOB6DzPMNq1n4fyz3l0z8Z0mfMsIQ3Xk=',
  service: { url: 'http://127.0.0.1:9', insecureHttp: false },
  enrollment: { idempotencyKey: '', tokenHash: '', name: 'one', type: 'origin', endpoint: null },
  membership: {
    peer: { id: 1, name: 'one', address: '192.0.2.1' },
    accessToken: null,
    map: {
      ...{ id: 1, name: 'compile', cidr: '192.0.2.0/24', routes: ['198.51.100.0/24'], revision: null },
      peers: [
        peer(1, 'one', 'origin', 'OCMyCS4ZwNpLmGm2uhe3pu/kYjZBWwc+cCzFEe10mR0=', []),
        peer(2, 'two', 'connector', '/8Jw5eCj0sT4mJ2b2vVtq5bAa5s6t9Q9T6yV8cQ7bXM=', ['198.51.100.0/24']),
      ],
    },
  },
  options: { listenPort: null, mtu: 1420, acceptRoutes: true, masquerade: true, allowRoutes: [] },
  ...{ enabled: true, resolved: {}, receipt: [] },
};

function peer(id, name, type, publicKey, routes) {
  return { id, name, type, publicKey, address: `192.0.2.${id}`, endpoint: `203.0.113.${id}:51820`, routes };
}

async function compile() {
  // No other user may write what root runs, whatever the installation's own umask is.
  process.umask(0o022);
  const own = mkdtempSync(join(tmpdir(), 'cpn-compile-'));
  try {
    const file = join(own, 'cpn-compile.json');
    writeFileSync(file, JSON.stringify(state), { mode: 0o600 });
    const environment = { CPN_CONFIG_DIR: own, CPN_STATE_DIR: own, CPN_RUNTIME_DIR: own };
    for (const stream of [process.stdout, process.stderr]) stream.write = () => true;
    for (const args of rehearsed) await runProgram(args, environment);
    await rehearseJoin(own, environment).catch(() => {});
    // A control plane as far as its folder, which is a file here.
    await runProgram(['control-plane', 'serve', '--data', file], environment);
    keepCode();
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
}

/** A join as far as its key: the service, which is here, refuses it. */
async function rehearseJoin(own, environment) {
  const service = createServer((_, reply) => reply.writeHead(401, { 'content-type': 'application/json' }).end('{}'));
  await once(service.listen(0, '127.0.0.1'), 'listening');
  writeFileSync(join(own, 'key'), `cpn_${'0'.repeat(43)}`, { mode: 0o600 });
  const url = `http://127.0.0.1:${service.address().port}`;
  const named = ['--name', 'one', '--endpoint', '203.0.113.1:51820'];
  await runProgram(['join', `file:${join(own, 'key')}`, '--api', url, '--insecure-http', ...named], environment);
  service.close();
}

/** What is there of earlier builds goes. */
function keepCode() {
  const all = dirname(loader.folder);
  const made = `${all}.new`;
  rmSync(made, { recursive: true, force: true });
  mkdirSync(join(made, basename(loader.folder)), { recursive: true });
  for (const [filename, script] of scripts) {
    writeFileSync(join(made, basename(loader.folder), `${basename(filename)}.bin`), script.createCachedData());
  }
  rmSync(all, { recursive: true, force: true });
  renameSync(made, all);
}

compile().then(() => process.exit());
