import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { architectures } from './architecture.ts';
import { command } from './command.ts';
import { buildDeb } from './deb.ts';
import { manifest, root, sourceDate } from './source.ts';

/**
 * Builds the image of this machine's architecture in a folder, as an OCI archive, and returns its path. Its root is a Debian with our
 * package installed; no registry is asked.
 */
export async function buildContainer(folder: string): Promise<string> {
  const own = architectures.find(({ node }) => node === process.arch);
  if (own === undefined) throw new Error(`there is no package for ${process.arch}`);
  const work = mkdtempSync(join(tmpdir(), 'cpn-container-'));
  const environment = { SOURCE_DATE_EPOCH: String(sourceDate()) };
  try {
    const deb = await buildDeb(own, work, 'none');
    const rootfs = ['mmdebstrap', '--mode=root', '--variant=minbase', '--quiet'];
    const options = ['--dpkgopt=path-exclude=/usr/share/doc/*', '--dpkgopt=path-include=/usr/share/doc/*/copyright'];
    const hooks = [`--customize-hook=upload ${deb} /tmp/cpn.deb`, '--customize-hook=chroot "$1" dpkg -i /tmp/cpn.deb'];
    const tidy = '--customize-hook=rm -rf "$1"/tmp/cpn.deb "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*';
    const include = '--include=wireguard-tools,iproute2,nftables,iputils-ping,libstdc++6,wireguard-go';
    command([...rootfs, ...options, include, ...hooks, tidy, 'bookworm', join(work, 'rootfs.tar')], { environment });
    cpSync(join(root, 'packaging/Containerfile'), join(work, 'Containerfile'));
    const store = ['--root', join(work, 'store'), '--runroot', join(work, 'run'), '--storage-driver', 'vfs'];
    const image = `cpn:${manifest.version}`;
    const time = ['--timestamp', environment.SOURCE_DATE_EPOCH];
    command(['buildah', ...store, 'bud', '--isolation', 'chroot', ...time, '-t', image, work], { environment });
    const file = join(folder, `cpn-${manifest.version}-${own.debian}.oci.tar`);
    mkdirSync(folder, { recursive: true });
    rmSync(file, { force: true });
    command(['buildah', ...store, 'push', image, `oci-archive:${file}:${image}`]);
    return file;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
