/** What surrounds a host changes: its routing daemon, its DHCP server, its resolver, its proxy, and the addresses of its peers. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { plan, status } from '../e2e/office.ts';
import { eventually } from '../lab/eventually.ts';
import { HttpProxy } from '../lab/http-proxy.ts';
import { Owner } from '../lab/owner.ts';
import { loadRoutes, manyRoutes } from '../lab/routing-table.ts';
import { applies, expectUnharmed, repairing, repairs } from './drift.ts';
import { type DriftLab, lan, startDriftLab } from './drift-lab.ts';
import { injecting } from './record.ts';

let lab: DriftLab;

beforeAll(async () => {
  lab = await startDriftLab({ connector: 'touched' });
});

afterAll(() => lab?.office.lab.stop());

const sh = (host: DriftLab['kept']['host'], script: string) => host.exec(['sh', '-ec', script]);

it('53: a routing daemon loads a large table, which starts no pass, and what it takes away comes back', async () => {
  const { kept, daemon } = lab;
  const mark = daemon.mark();
  await loadRoutes(kept.host, manyRoutes);
  await repairing(53, lab, {
    how: `${manyRoutes} routes, and ip route del`,
    script: `ip route del ${lan} table 8350`,
    changes: [`add route ${lan}: a peer serves it`],
    works: () => lab.reachesLan(),
  });
  expect(daemon.since(mark).filter(({ msg }) => msg === repairs)).toHaveLength(1);
  await kept.host.exec(['ip', 'route', 'flush', 'proto', 'bgp'], { timeoutMs: 60_000 });
});

it('54: a route of DHCP inside an accepted one is reported by status, its check and doctor', () =>
  injecting(54, async (row) => {
    const { host } = lab.kept;
    const route = '192.168.50.128/25 via 203.0.113.11 proto dhcp';
    const losses = await expectUnharmed(lab, async () => {
      row.injected(`ip route add ${route}`);
      await sh(host, `ip route add ${route}`);
      const { exitCode, stdout } = await host.cpn(['status', '--check'], { allowFailure: true });
      expect([exitCode, stdout]).toEqual([3, expect.stringContaining('192.168.50.128/25 of it leads to eth0')]);
      expect((await host.cpn(['doctor'], { allowFailure: true })).stdout).toContain(
        '192.168.50.128/25 of 192.168.50.0/24 leads to eth0',
      );
      row.detected();
      await sh(host, `ip route del ${route}`);
      expect((await status(host)).state).toBe('up');
      row.repaired();
    });
    row.lost(losses);
  }));

it('55: a drop before the packets are forwarded, as of Docker 28, is reported with the command that opens it', () =>
  injecting(55, async (row) => {
    const { touched } = lab;
    const losses = await expectUnharmed(lab, async () => {
      const rule = `PREROUTING -d ${lan} -i cpn0 -j DROP`;
      row.injected(`iptables -t raw -A ${rule}`);
      await sh(touched.host, `iptables -t raw -A ${rule}`);
      const { state, warnings } = await status(touched.host);
      expect(state).toBe('degraded');
      row.detected();
      const [, remedy = ''] = /"(iptables -t raw [^"]+)"/.exec(warnings.join('\n')) ?? [];
      await sh(touched.host, remedy);
      await eventually('the LAN answers', () => lab.reachesLan());
      row.repaired();
      await sh(touched.host, 'iptables -t raw -F PREROUTING');
    });
    row.lost(losses);
  }));

it('56: the endpoint of a peer is of the other address family', () =>
  injecting(56, async (row) => {
    const { kept, touched, daemon } = lab;
    const losses = await expectUnharmed(lab, async () => {
      for (const [host, number] of [
        [kept.host, 13],
        [touched.host, 11],
      ] as const) {
        await sh(host, `ip address add 2001:db8::${number}/64 dev eth0 nodad`);
      }
      for (const endpoint of ['[2001:db8::11]:51820', '203.0.113.11:51820']) {
        const mark = daemon.mark();
        if (endpoint.startsWith('[')) row.injected(`cpn set --endpoint ${endpoint}`);
        await touched.host.cpn(['set', 'office', '--endpoint', endpoint]);
        await daemon.awaitLog('the endpoint', ({ msg }) => msg === applies, mark);
        if (endpoint.startsWith('[')) row.detected();
        await eventually(`the LAN answers by ${endpoint}`, () => lab.reachesLan());
      }
      row.repaired();
      expect(await plan(kept.host)).toEqual({ exitCode: 0, changes: [] });
    });
    row.lost(losses);
  }));

it('58: the server of a local resolver stays outside of a route that comes', () =>
  injecting(58, async (row) => {
    const { kept, daemon, office } = lab;
    const [server, route] = ['192.168.60.53', '192.168.60.0/24'];
    const losses = await expectUnharmed(lab, async () => {
      const flags = [
        '--keep-in-foreground',
        '--conf-file=/dev/null',
        '--no-resolv',
        '--user=root',
        '--bind-interfaces',
      ];
      const stub = kept.host.spawn(['dnsmasq', ...flags, '--listen-address=127.0.0.1', `--server=${server}`]);
      await eventually('dnsmasq listens', async () => (await sh(kept.host, 'ss -Hlun sport = :53')).stdout !== '');
      const mark = daemon.mark();
      row.injected(`dnsmasq --server=${server}, and a route ${route}`);
      await new Owner(office.controlPlane).setRoutes(1, [lan, route]);
      await daemon.awaitLog('the route', ({ msg }) => msg === applies, mark);
      row.detected();
      const { stdout } = await kept.host.exec(['ip', 'route', 'get', server]);
      expect(stdout).toContain('dev eth0');
      expect((await status(kept.host)).routes).toContainEqual(
        expect.objectContaining({ prefix: route, reason: `${server} stays outside: a resolver` }),
      );
      row.repaired();
      await stub.stop();
      const after = daemon.mark();
      await new Owner(office.controlPlane).setRoutes(1, [lan]);
      await daemon.awaitLog('the route is gone', ({ msg }) => msg === applies, after);
    });
    row.lost(losses);
  }));

it('59: the proxy to the control plane dies', () =>
  injecting(59, async (row) => {
    const { kept, untouched, daemon } = lab;
    const proxy = await HttpProxy.start(untouched.host);
    const sync = async () => (await status(kept.host)).sync;
    const losses = await expectUnharmed(lab, async () => {
      await kept.host.cpn(['set', 'office', '--proxy', proxy.url]);
      await eventually('it waits through the proxy', async () => (await sync()).mode === 'push');
      row.injected('the process of the proxy is ended');
      await proxy.stop();
      // tinyproxy may keep a connection that waits until the wait is over.
      daemon.process.signal('SIGHUP');
      await eventually('status names the proxy', async () => String((await sync()).error).includes(proxy.url));
      row.detected();
      expect(await lab.reachesLan()).toBe(true);
      await proxy.restart();
      const isBack = async () => {
        const { mode, error } = await sync();
        return mode === 'push' && !error;
      };
      await eventually('it waits again', isBack, { timeoutMs: 60_000 });
      row.repaired();
      await kept.host.cpn(['set', 'office', '--proxy', 'none']);
      await proxy.stop();
    });
    row.lost(losses);
  }));
