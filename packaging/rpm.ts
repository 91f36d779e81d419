import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Architecture } from './architecture.ts';
import { command } from './command.ts';
import { type Compression, longDescription, shortDescription } from './deb.ts';
import { manifest, sourceDate, systemVersion } from './source.ts';
import { listLicences, listUnits, settle, writeTree } from './tree.ts';

/**
 * Builds the rpm of an architecture in a folder, and returns its path. The same sources give the
 * same bytes.
 */
export async function buildRpm(architecture: Architecture, folder: string, compression: Compression): Promise<string> {
  const work = mkdtempSync(join(tmpdir(), 'cpn-rpm-'));
  try {
    const tree = join(work, 'tree');
    await writeTree(tree, architecture);
    mkdirSync(join(tree, 'usr/share/licenses/cpn'), { recursive: true });
    for (const [name, text] of Object.entries(listLicences(architecture))) {
      writeFileSync(join(tree, 'usr/share/licenses/cpn', name), text);
    }
    // Where Debian's zsh looks, others do not.
    cpSync(join(tree, 'usr/share/zsh/vendor-completions'), join(tree, 'usr/share/zsh/site-functions'), {
      recursive: true,
    });
    rmSync(join(tree, 'usr/share/zsh/vendor-completions'), { recursive: true });
    settle(tree);
    const spec = join(work, 'cpn.spec');
    writeFileSync(spec, renderSpec(tree, compression));
    const target = `${architecture.rpm}-linux`;
    command(['rpmbuild', '-bb', '--quiet', '--target', target, '--define', `_topdir ${work}/build`, spec], {
      environment: { SOURCE_DATE_EPOCH: String(sourceDate()), HOME: work },
    });
    const name = `cpn-${systemVersion()}-1.${architecture.rpm}.rpm`;
    mkdirSync(folder, { recursive: true });
    cpSync(join(work, 'build/RPMS', architecture.rpm, name), join(folder, name));
    return join(folder, name);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/**
 * The tree is made elsewhere: rpmbuild only packs it, and leaves the other machine's files as they
 * are.
 */
export function renderSpec(tree: string, compression: Compression): string {
  const units = listUnits();
  const payload = compression === 'none' ? 'w0.gzdio' : 'w6T2.xzdio';
  return `%global __os_install_post %{nil}
%global __brp_check_rpaths %{nil}
%global debug_package %{nil}
%global _build_id_links none
%global _binary_payload ${payload}
%global _buildhost localhost
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1
Name: cpn
Version: ${systemVersion()}
Release: 1
Summary: ${shortDescription}
License: ${manifest.license}
Requires: wireguard-tools, iproute, nftables
Recommends: iputils

%description
${longDescription.join('\n')}

%install
cp -a ${tree}/. %{buildroot}/

%post
/usr/lib/cpn/node /usr/lib/cpn/compile.cjs >/dev/null 2>&1 || :
[ "$1" -gt 1 ] || systemctl --no-reload preset cpn-join.service >/dev/null 2>&1 || :
[ ! -d /run/systemd/system ] || systemctl --system daemon-reload >/dev/null 2>&1 || :

%preun
[ "$1" -gt 0 ] || rm -rf /usr/lib/cpn/compiled
if [ "$1" -eq 0 ] && [ -d /run/systemd/system ]; then
  for unit in ${units.join(' ')}; do systemctl --no-reload disable --now "$unit" >/dev/null 2>&1 || :; done
fi

%postun
[ ! -d /run/systemd/system ] || systemctl --system daemon-reload >/dev/null 2>&1 || :

%files
%defattr(-,root,root)
/usr/bin/cpn
/usr/lib/cpn
/usr/lib/NetworkManager/conf.d/20-cpn.conf
/usr/lib/systemd/network/10-cpn.network
${units.map((unit) => `/usr/lib/systemd/system/${unit}\n`).join('')}/usr/share/bash-completion/completions/cpn
/usr/share/cpn
/usr/share/doc/cpn/examples
/usr/share/fish/vendor_completions.d/cpn.fish
/usr/share/licenses/cpn
/usr/share/man/man1/cpn*.1.gz
/usr/share/zsh/site-functions/_cpn
`;
}
