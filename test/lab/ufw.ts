import type { Host } from './host.ts';

/**
 * Gives a host an /etc/ufw of its own, as the package has it, and turns ufw on: nothing comes in but answers. It sets no sysctl and
 * loads no module, which would be the machine's.
 */
const script = `set -e
rm /etc/ufw /etc/default
cp -a "$CPN_LAB_ETC/ufw" /etc/ufw
mkdir /etc/default
sed -E 's/^(IPT_SYSCTL|IPT_MODULES)=.*/\\1=/; s/^IPV6=.*/IPV6=no/' "$CPN_LAB_ETC/default/ufw" >/etc/default/ufw
ufw --force enable`;

export async function startUfw(host: Host): Promise<void> {
  await host.exec(['sh', '-c', script], { env: { CPN_LAB_ETC: `${host.folder}/machine-etc` } });
}

/** The rules that were added to ufw, as it prints them. */
export async function addedRules(host: Host): Promise<string[]> {
  const { stdout } = await host.exec(['ufw', 'show', 'added']);
  return stdout.split('\n').filter((line) => line.startsWith('ufw '));
}
