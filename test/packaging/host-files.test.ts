import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { architectures, readMachine } from '../../packaging/architecture.ts';
import { renderChangelog, renderControl } from '../../packaging/deb.ts';
import { manifest, readReleases } from '../../packaging/source.ts';
import { run } from '../lab/run.ts';

const packaging = join(import.meta.dirname, '../../packaging');
let root: string;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'cpn-root-'));
  for (const folder of ['etc/wireguard', 'var/lib/cpn', 'run/cpn', 'var/lib/cpn-control-plane']) {
    mkdirSync(join(root, folder), { recursive: true });
  }
});

afterAll(() => rmSync(root, { recursive: true, force: true }));

it('the control file depends on what the program runs, for each architecture', () => {
  for (const architecture of architectures) {
    const control = renderControl(architecture, 1000);
    expect(control).toMatch(/^Depends: wireguard-tools, iproute2, nftables, /m);
    expect(control).toContain(`Architecture: ${architecture.debian}\n`);
    expect(control).toContain(`Version: ${manifest.version}\n`);
  }
});

it('the changelog tells of this version', () => {
  const [newest] = readReleases();
  expect([newest?.version, newest?.changes.length]).toEqual([manifest.version, expect.any(Number)]);
  expect(renderChangelog().split('\n')[0]).toBe(`cpn (${manifest.version}) stable; urgency=medium`);
});

it('the machine of a program is read from its head, and of nothing else', () => {
  expect(architectures.map(({ machine }) => machine)).toContain(readMachine(readFileSync(process.execPath)));
  expect(readMachine(Buffer.from('#!/bin/sh\nexec something else'))).toBe(null);
  expect(readMachine(new Uint8Array(3))).toBe(null);
});

describe('purging the Debian package', () => {
  const receipt = (key: string, before: string, after: string) => ({ after, before, key, made: 'sysctl' });
  const state = {
    receipt: [receipt('net.ipv4.ip_forward', '0', '1'), receipt('net.ipv4.conf.all.rp_filter', '0', '1')],
  };

  it('takes back what is marked as ours, and nothing else', async () => {
    writeFileSync(join(root, 'var/lib/cpn/cpn0.json'), JSON.stringify(state, null, 2));
    writeFileSync(join(root, 'var/lib/cpn/cpn1.json'), '{}');
    for (const file of ['cpn0.conf', 'cpn1.conf', 'wg0.conf']) writeFileSync(join(root, 'etc/wireguard', file), '');
    const hosts =
      '127.0.0.1 localhost\n# BEGIN cpn cpn0 (written by cpn; edits are lost)\n10.77.0.2 a.office.cpn.internal\n# END cpn cpn0\n::1 six\n';
    writeFileSync(join(root, 'etc/hosts'), hosts);
    mkdirSync(join(root, 'etc/dnsmasq.d'));
    const dropIn = (link: string) => join(root, `etc/dnsmasq.d/cpn-${link}.conf`);
    writeFileSync(dropIn('cpn0'), '# cpn cpn0 (written by cpn; edits are lost)\nserver=/corp.example/192.168.50.53\n');
    writeFileSync(dropIn('cpn1'), '# of another program\n');
    const text = readFileSync(join(packaging, 'debian/postrm'), 'utf8').replaceAll('@UNITS@', '');
    writeFileSync(join(root, 'postrm'), text);
    // cpn1 is an interface of another program with a name of ours.
    const script = `set -e
      ip link add cpn0 type veth peer name veth0; ip link set cpn0 alias cpn:1; ip link add cpn1 type veth peer name veth1
      nft add table inet cpn_cpn0; nft add table inet other
      ip rule add protocol 157 table 51820; ip rule add protocol 99 table 51821
      ip -6 rule add protocol 157 table 51820; ip -6 rule add protocol 99 table 51822
      echo 1 >/proc/sys/net/ipv4/ip_forward; echo 2 >/proc/sys/net/ipv4/conf/all/rp_filter
      sh "$1/postrm" purge
      echo "forward $(cat /proc/sys/net/ipv4/ip_forward) filter $(cat /proc/sys/net/ipv4/conf/all/rp_filter)"
      ls /sys/class/net; nft list tables; ip rule; ip -6 rule`;
    // Its own network and mounts: the file systems of the kernel show the namespace that mounted them.
    const mounted = 'mount -t sysfs sysfs /sys && exec sh -c "$0" sh "$1"';
    const argv = ['unshare', '--net', '--mount', 'sh', '-c', mounted, script, root];
    const { stdout, stderr } = await run(argv, { env: { DPKG_ROOT: root } });
    expect(stderr).toContain('cpn: interface cpn1 is not marked as ours, and stays\n');
    expect(stderr).toContain('took back from this host: cpn0 cpn1;');
    expect(stderr).toContain('the database of the control plane stays');
    // Another program has changed the filter since.
    expect(stdout).toContain('forward 0 filter 2\n');
    expect(stdout).not.toMatch(/cpn0|51820/);
    for (const other of ['cpn1', 'table inet other', 'lookup 51821', 'lookup 51822']) expect(stdout).toContain(other);
    expect(readFileSync(join(root, 'etc/hosts'), 'utf8')).toBe('127.0.0.1 localhost\n::1 six\n');
    const left = (await run(['find', root, '-type', 'f'])).stdout.split('\n').filter((path) => path !== '');
    expect(left.sort()).toEqual(
      ['etc/dnsmasq.d/cpn-cpn1.conf', 'etc/hosts', 'etc/wireguard/wg0.conf', 'postrm'].map((path) => join(root, path)),
    );
  });

  it.each([
    ['restarts a resolver', '2099-01-01 00:00:00 UTC', 'try-restart dnsmasq.service\n', ''],
    ['names the settings that changed since it started', '2001-01-01 00:00:00 UTC', '', '/etc/dnsmasq.d/site.conf\n'],
    ['does not restart one whose start is unknown', '', '', '/etc (its start is unknown)\n'],
  ])('%s', async (_, since, done, named) => {
    mkdirSync(join(root, 'etc/dnsmasq.d'), { recursive: true });
    for (const name of ['site.conf', 'cpn-cpn1.conf']) writeFileSync(join(root, 'etc/dnsmasq.d', name), '');
    const text = readFileSync(join(packaging, 'debian/postrm'), 'utf8').replaceAll('/etc', join(root, 'etc'));
    const [reload = ''] = /^reload_resolver\(\) \{[\s\S]*?^\}$/m.exec(text) ?? [];
    const script = `root=; systemctl() { case $1 in is-active) ;; show) echo '${since}' ;; *) echo "$@" ;; esac; }
      dnsmasq() { :; }
      ${reload}
      reload_resolver ${root}/etc/dnsmasq.d/cpn-cpn0.conf`;
    const { stdout, stderr } = await run(['sh', '-c', script]);
    expect(stdout).toBe(done);
    expect(stderr.endsWith(named)).toBe(true);
    expect(stderr === '').toBe(named === '');
  });

  it('leaves a hosts file alone whose block has no end, and a state whose name is that of no interface', async () => {
    const hosts = '127.0.0.1 localhost\n# BEGIN cpn cpn0 (written by cpn; edits are lost)\n10.77.0.2 a\n::1 six\n';
    writeFileSync(join(root, 'etc/hosts'), hosts);
    mkdirSync(join(root, 'var/lib/cpn'), { recursive: true });
    for (const name of ['cpn0', '.hidden', 'a b', '$(id)']) writeFileSync(join(root, `var/lib/cpn/${name}.json`), '{}');
    const text = readFileSync(join(packaging, 'debian/postrm'), 'utf8').replaceAll('@UNITS@', '');
    writeFileSync(join(root, 'postrm'), text);
    const argv = ['unshare', '--net', 'sh', join(root, 'postrm'), 'purge'];
    const { stderr } = await run(argv, { env: { DPKG_ROOT: root } });
    expect(stderr).toContain('took back from this host: cpn0;');
    expect(readFileSync(join(root, 'etc/hosts'), 'utf8')).toBe(hosts);
  });

  it.each([
    ['turns off what was turned on of one interface', '0', '0'],
    ['leaves forwarding to another program that turned all of it on since', '1', '1'],
  ])('%s', async (_, all, left) => {
    const entry = receipt('net.ipv4.conf.lan0/7.forwarding', '0', '1');
    const opening = { all: '0', link: 'lan0.7', links: ['lo'] };
    mkdirSync(join(root, 'var/lib/cpn'), { recursive: true });
    writeFileSync(join(root, 'var/lib/cpn/cpn0.json'), JSON.stringify({ receipt: [{ ...entry, opening }] }, null, 2));
    writeFileSync(
      join(root, 'postrm'),
      readFileSync(join(packaging, 'debian/postrm'), 'utf8').replaceAll('@UNITS@', ''),
    );
    const script = `set -e
      ip link add lan0.7 type veth peer name veth0
      echo ${all} >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv4/conf/lan0.7/forwarding
      sh "$0/postrm" purge; cat /proc/sys/net/ipv4/conf/lan0.7/forwarding`;
    const { stdout } = await run(['unshare', '--net', 'sh', '-c', script, root], { env: { DPKG_ROOT: root } });
    expect(stdout).toBe(`${left}\n`);
  });

  it('every maintainer script is one that sh reads', async () => {
    for (const script of ['postinst', 'prerm', 'postrm']) {
      expect((await run(['sh', '-n', join(packaging, 'debian', script)])).stderr).toBe('');
    }
  });
});
