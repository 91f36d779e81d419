import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { architectures } from './architecture.ts';
import { command } from './command.ts';
import { buildDeb } from './deb.ts';
import { manifest, root, sourceDate } from './source.ts';

/** The packages of a container image; wireguard-go is for hosts whose kernel has no WireGuard. */
const included = 'wireguard-tools,iproute2,nftables,iputils-ping,libstdc++6,wireguard-go';

/** Files of Debian's packages that a container does not need. */
const unread = ['doc', 'info', 'locale', 'man'].map((folder) => `--dpkgopt=path-exclude=/usr/share/${folder}/*`);

/**
 * What the machine that builds, and the moment, would leave in the image; and caches. A container
 * gets its own of the first three.
 */
const tidy = [
  'for file in hostname hosts resolv.conf; do : >"$1/etc/$file"; done',
  'rm -rf "$1"/tmp/* "$1"/var/lib/apt/lists/* "$1"/var/cache/*/* "$1"/var/log/*',
];

/**
 * Builds the image of this machine's architecture in a folder, as an OCI archive, and returns its
 * path. Its root is a Debian with our package installed; no registry is asked. The same sources and
 * the same Debian give the same bytes.
 */
export async function buildContainer(folder: string): Promise<string> {
  const own = architectures.find(({ node }) => node === process.arch);
  if (own === undefined) throw new Error(`there is no package for ${process.arch}`);
  const work = mkdtempSync(join(tmpdir(), 'cpn-container-'));
  const environment = { SOURCE_DATE_EPOCH: String(sourceDate()) };
  try {
    const deb = await buildDeb(own, work, 'none');
    const context = join(work, 'context');
    mkdirSync(context);
    const hooks = [`upload ${deb} /tmp/cpn.deb`, 'chroot "$1" dpkg -i /tmp/cpn.deb', ...tidy];
    const how = ['--mode=root', '--variant=essential', '--quiet', `--include=${included}`];
    const options = [...unread, '--dpkgopt=path-include=/usr/share/doc/*/copyright'];
    const hooked = hooks.map((hook) => `--customize-hook=${hook}`);
    command(['mmdebstrap', ...how, ...options, ...hooked, 'bookworm', join(context, 'rootfs.tar')], { environment });

    const image = `cpn:${manifest.version}`;
    const time = ['--timestamp', environment.SOURCE_DATE_EPOCH];
    const file = join(folder, `cpn-${manifest.version}-${own.debian}.oci.tar`);
    const recipe = ['--file', join(root, 'packaging/Containerfile'), ...listLabels()];
    command([...buildah(work), 'bud', '--isolation', 'chroot', ...time, ...recipe, '-t', image, context], {
      environment,
    });
    mkdirSync(folder, { recursive: true });
    rmSync(file, { force: true });
    // An archive of buildah's own has the time of the day in it.
    const layout = join(work, 'layout');
    command([...buildah(work), 'push', image, `oci:${layout}:${image}`]);
    const same = [
      '--sort=name',
      `--mtime=@${environment.SOURCE_DATE_EPOCH}`,
      '--owner=0',
      '--group=0',
      '--numeric-owner',
    ];
    command(['tar', '-C', layout, ...same, '-cf', file, 'blobs', 'index.json', 'oci-layout']);
    return file;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** https://github.com/opencontainers/image-spec/blob/main/annotations.md */
function listLabels(): string[] {
  const labels = {
    title: 'cpn',
    version: manifest.version,
    description: manifest.description,
    licenses: manifest.license,
  };
  return Object.entries(labels).flatMap(([name, value]) => ['--label', `org.opencontainers.image.${name}=${value}`]);
}

/**
 * Starts an image from its archive: the version must be that of the package, every tool of it must
 * be there, and its control plane must answer on loopback.
 *
 * @throws Error with what was said
 */
export function checkContainer(file: string): void {
  const work = mkdtempSync(join(tmpdir(), 'cpn-image-'));
  try {
    const container = command([...buildah(work), 'from', '--quiet', `oci-archive:${file}`]).trim();
    const start = [...buildah(work), 'run', '--isolation', 'chroot', container, '--'];
    const script = readFileSync(join(root, 'packaging/check-image.sh'), 'utf8');
    // Judged by its exit code: buildah 1.28 loses the output of a short program, one time in some
    // twenty.
    command([...start, 'sh', '-euc', script, 'check-image', manifest.version]);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** buildah with storage of its own, which needs no file system that this machine may lack. */
function buildah(work: string): string[] {
  return ['buildah', '--root', join(work, 'store'), '--runroot', join(work, 'run'), '--storage-driver', 'vfs'];
}
