import { appendFile, cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { REPOSITORY } from './built-program.ts';
import { eventually } from './eventually.ts';
import type { Host } from './host.ts';

/** A way to a control plane through a proxy. */
export interface ProxiedWay {
  readonly name: string;
  /** The base address of the control plane there. */
  readonly url: string;
}

export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

const sites = ['nginx', 'apache', 'haproxy', 'caddy'] as const;
type Site = (typeof sites)[number];

/** Ports of each proxy: with Debian's settings, the same where it compresses JSON, and as documented. */
const portsOf = (site: Site) => {
  const at = sites.indexOf(site);
  return { untouched: 7901 + at, plain: 8001 + at, documented: 8101 + at };
};
/** The documented nginx behind its own TLS. */
const tlsPort = 8301;

/**
 * Starts Debian's nginx, Apache, HAProxy and Caddy on a host, in front of the control plane at `target` (`ADDRESS:PORT`). Each serves it
 * once with Debian's settings, where it compresses JSON, and once as docs/control-plane.md describes, below /vpn. More ports are of
 * proxies with Debian's settings alone ({@link untouchedWays}), of nginx with TLS, where `tls` names its certificate and key
 * ({@link tlsWay}), and of proxies with which push does not work as it should ({@link faultyWays}).
 */
export async function startReverseProxies(
  host: Host,
  target: string,
  tls: CertificateFiles | null = null,
): Promise<readonly ProxiedWay[]> {
  const documented = await readDocumented(target);
  for (const folder of ['nginx', 'apache2']) {
    await rm(join(host.etcDir, folder), { recursive: true, force: true });
    await cp(`/etc/${folder}`, join(host.etcDir, folder), { recursive: true, verbatimSymlinks: true });
    await rm(join(host.etcDir, folder, 'sites-enabled'), { recursive: true });
    await mkdir(join(host.etcDir, folder, 'sites-enabled'));
  }
  await startNginx(host, target, documented.nginx, tls);
  await startApache(host, target, documented.apache);
  await startHaproxy(host, target, documented.haproxy);
  await startCaddy(host, target, documented.caddy);
  const { address } = host;
  const ways = sites.flatMap((site) => {
    const { plain, documented: below } = portsOf(site);
    return [
      { name: `${site}, compressing`, url: `http://${address}:${plain}` },
      { name: `${site}, as documented`, url: `http://${address}:${below}/vpn` },
    ];
  });
  for (const { url } of [...ways, ...untouchedWays(host), ...faultyWays(host)]) {
    await eventually(`a control plane answers at ${url}`, async () => {
      const { stdout } = await host.exec(['curl', '-s', `${url}/healthz`], { allowFailure: true });
      return stdout.includes('ok');
    });
  }
  return ways;
}

/** Ports of proxies with a fault, by a name of an interface. */
const faulty = {
  /** Removes If-None-Match, as a proxy with a cache does. */
  deaf: 8201,
  /** Gives up on a reply after 6 s, with a 504. */
  hasty: 8202,
  /** The same with a 502. */
  abrupt: 8203,
  /** Removes Prefer. */
  plain: 8204,
  /** Turns a 226 into a 200 without its headers. */
  hiding: 8205,
  /** Turns a 226 into a 502. */
  refusing: 8206,
} as const;

export const untouchedWays = ({ address }: Host): readonly ProxiedWay[] =>
  sites.map((site) => ({ name: `${site}, Debian's settings`, url: `http://${address}:${portsOf(site).untouched}` }));

export const tlsWay = ({ address }: Host): ProxiedWay => ({
  name: 'nginx with TLS, as documented',
  url: `https://${address}:${tlsPort}/vpn`,
});

export const faultyWays = ({ address }: Host): readonly ProxiedWay[] =>
  Object.entries(faulty).map(([name, port]) => ({ name, url: `http://${address}:${port}` }));

/** The first block of each proxy in its section of the documentation, for the address of the control plane. */
async function readDocumented(target: string): Promise<Readonly<Record<Site, string>>> {
  const page = await readFile(join(REPOSITORY, 'docs/control-plane.md'), 'utf8');
  const [, text = ''] = page.split('\n## Behind a proxy\n');
  const blockOf = (site: Site) => {
    const [, block] = new RegExp(`^\`\`\`${site}\\n(.*?)^\`\`\``, 'ms').exec(text) ?? [];
    if (block === undefined) throw new Error(`docs/control-plane.md has no block of ${site}`);
    return [site, block.replaceAll('127.0.0.1:8787', target)] as const;
  };
  return Object.fromEntries(sites.map(blockOf)) as Record<Site, string>;
}

async function startNginx(host: Host, target: string, documented: string, tls: CertificateFiles | null): Promise<void> {
  const { untouched, plain, documented: below } = portsOf('nginx');
  const folder = join(host.etcDir, 'nginx');
  const main = (await readFile(join(folder, 'nginx.conf'), 'utf8')).replaceAll('/var/log/nginx', host.folder);
  await writeFile(join(folder, 'nginx.conf'), main);
  const proxied = `proxy_pass http://${target};`;
  const servers = [
    `server { listen ${untouched}; location / { ${proxied} } }`,
    `server { listen ${plain}; gzip_types application/json; location / { ${proxied} } }`,
    `server { listen ${below};\n${documented}}`,
    `server { listen ${faulty.deaf}; location / { ${proxied} proxy_set_header If-None-Match ""; } }`,
    `server { listen ${faulty.plain}; location / { ${proxied} proxy_set_header Prefer ""; } }`,
  ];
  if (tls !== null) {
    const files = `ssl_certificate ${tls.cert}; ssl_certificate_key ${tls.key};`;
    servers.push(`server { listen ${tlsPort} ssl; ${files}\n${documented}}`);
  }
  await writeFile(join(folder, 'sites-enabled', 'cpn'), `${servers.join('\n')}\n`);
  host.spawn(['nginx', '-e', join(host.folder, 'error.log'), '-g', 'daemon off;']);
}

async function startApache(host: Host, target: string, documented: string): Promise<void> {
  const { untouched, plain, documented: below } = portsOf('apache');
  const folder = join(host.etcDir, 'apache2');
  const listened = [untouched, plain, below, faulty.abrupt];
  await writeFile(join(folder, 'ports.conf'), listened.map((port) => `Listen ${port}\n`).join(''));
  for (const module of ['proxy.load', 'proxy_http.load', 'headers.load'])
    await cp(join(folder, 'mods-available', module), join(folder, 'mods-enabled', module));
  const virtual = [
    'ServerName proxy.test',
    `<VirtualHost *:${untouched}>\nProxyPass / http://${target}/\n</VirtualHost>`,
    `<VirtualHost *:${plain}>\nAddOutputFilterByType DEFLATE application/json\nProxyPass / http://${target}/\n</VirtualHost>`,
    `<VirtualHost *:${below}>\n${documented}</VirtualHost>`,
    `<VirtualHost *:${faulty.abrupt}>\nProxyTimeout 6\nProxyPass / http://${target}/\n</VirtualHost>`,
  ];
  await writeFile(join(folder, 'sites-enabled', 'cpn.conf'), `${virtual.join('\n')}\n`);
  const run = join(host.folder, 'apache');
  await mkdir(run);
  const folders = { APACHE_RUN_DIR: run, APACHE_LOCK_DIR: run, APACHE_LOG_DIR: run, APACHE_PID_FILE: join(run, 'pid') };
  const env = { ...folders, APACHE_RUN_USER: 'www-data', APACHE_RUN_GROUP: 'www-data' };
  host.spawn(['apache2', '-D', 'FOREGROUND'], { env });
}

async function startHaproxy(host: Host, target: string, documented: string): Promise<void> {
  const { untouched, plain, documented: below } = portsOf('haproxy');
  const file = join(host.folder, 'haproxy.cfg');
  const sections = [
    `frontend untouched\n    bind :${untouched}\n    default_backend plain`,
    `frontend plain\n    bind :${plain}\n    compression algo gzip\n    compression type application/json\n    default_backend plain`,
    `backend plain\n    server cpn ${target}`,
    `frontend documented\n    bind :${below}\n    use_backend cpn if { path_beg /vpn/ }`,
    documented,
    `frontend hasty\n    bind :${faulty.hasty}\n    default_backend hasty`,
    `backend hasty\n    timeout server 6s\n    server cpn ${target}`,
    `frontend hiding\n    bind :${faulty.hiding}\n    default_backend hiding`,
    `backend hiding\n    http-response del-header IM\n    http-response del-header Delta-Base\n    http-response set-status 200 if { status 226 }\n    server cpn ${target}`,
    `frontend refusing\n    bind :${faulty.refusing}\n    default_backend refusing`,
    `backend refusing\n    http-response deny deny_status 502 if { status 226 }\n    server cpn ${target}`,
  ];
  await writeFile(file, `${sections.join('\n')}\n`);
  await mkdir(join(host.folder, 'run', 'haproxy'), { recursive: true });
  host.spawn(['haproxy', '-db', '-f', '/etc/haproxy/haproxy.cfg', '-f', file]);
}

async function startCaddy(host: Host, target: string, documented: string): Promise<void> {
  const { untouched, plain, documented: below } = portsOf('caddy');
  const file = join(host.folder, 'Caddyfile');
  await writeFile(file, '{\nadmin off\nauto_https off\n}\n');
  await appendFile(file, `http://:${untouched} {\nreverse_proxy ${target}\n}\n`);
  await appendFile(file, `http://:${plain} {\nencode gzip\nreverse_proxy ${target}\n}\n`);
  await appendFile(file, `http://:${below} {\n${documented}}\n`);
  host.spawn(['caddy', 'run', '--config', file, '--adapter', 'caddyfile'], { env: { XDG_DATA_HOME: host.folder } });
}
