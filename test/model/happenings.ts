/** What can happen on a day: each thing says when it can, what it does to real hosts, and how it changes what should be. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { makeKey } from '../lab/control-plane.ts';
import { type Connector, connectors, lanRoute, type Member, type Model, members, type Site, second } from './site.ts';

/** One thing that happens, to one of the hosts. */
interface Happening<Name extends Member> {
  /** In words, for the report. */
  readonly what: string;
  /** To which hosts it can happen. */
  readonly to: readonly Name[];
  /** Whether it can happen now; to a member that is present, unless this says otherwise. */
  can?(model: Model, name: Name): boolean;
  do(site: Site, name: Name, model: Model): Promise<void>;
}

const happening = <Name extends Member>(each: Happening<Name>): Happening<Member> =>
  each as unknown as Happening<Member>;

const sh = (site: Site, name: Member, script: string) => site.host(name).exec(['sh', '-c', script]);

/** True where another connector serves while this one is away. */
const isSpare = (model: Model, name: Connector) =>
  connectors.some((other) => other !== name && model.present.has(other) && !model.drained.has(other));

/** Packet rules as ufw makes them: nothing comes in but answers, pings, ssh and WireGuard. */
const strictInput = `table inet ufwlike { chain input { type filter hook input priority 0; policy drop;
ct state established,related accept; iif lo accept; meta l4proto icmp accept; udp dport 51820-51829 accept; tcp dport 22 accept; }; }`;

/**
 * What docker does to a host: forwarding for all, a bridge of its own that is masqueraded, and a forward chain that drops the rest. Its
 * remedy for what others forward is there too, as `cpn doctor` names it: else no connector works beside it.
 */
const dockerLike = `ip link show docker0 >/dev/null 2>&1 || { ip link add docker0 type bridge; ip address add 172.17.0.1/16 dev docker0; ip link set docker0 up; }
nft list table ip dockerlike >/dev/null 2>&1 || nft -f -
echo 1 >/proc/sys/net/ipv4/ip_forward`;
const dockerRules = `table ip dockerlike {
chain user { iifname "cpn0" accept; oifname "cpn0" accept; }
chain forward { type filter hook forward priority 0; policy drop; jump user; ct state established,related accept; iifname "docker0" accept; }
chain postrouting { type nat hook postrouting priority 100; oifname != "docker0" ip saddr 172.17.0.0/16 masquerade; }
}`;

const happenings: readonly Happening<Member>[] = [
  happening({
    what: 'the daemon is restarted',
    to: members,
    async do(site, name) {
      await site.stopDaemon(name);
      await site.startDaemon(name);
    },
  }),
  happening({
    what: 'the daemon is killed, and started again',
    to: members,
    async do(site, name) {
      await site.stopDaemon(name, 'KILL');
      await site.startDaemon(name);
    },
  }),
  happening({
    what: 'the daemon sleeps for a while',
    to: members,
    async do(site, name) {
      const { process } = site.center.daemon(site.host(name));
      process.signal('SIGSTOP');
      await sh(site, name, 'sleep 3');
      process.signal('SIGCONT');
    },
  }),
  happening({
    what: 'all packet rules are flushed',
    to: connectors,
    // With docker's chain gone its forwarding for all is open, which is not ours to close.
    can: (model, name) => model.present.has(name) && !model.dockers.has(name),
    async do(site, name, model) {
      model.isLeakExcused = true;
      await sh(site, name, 'nft flush ruleset');
    },
  }),
  happening({
    what: 'the interface is set down',
    to: members,
    do: async (site, name) => void (await sh(site, name, 'ip link set cpn0 down')),
  }),
  happening({
    what: 'the interface is deleted',
    to: members,
    do: async (site, name) => void (await sh(site, name, 'ip link delete cpn0')),
  }),
  happening({
    what: 'the routes into the tunnel are flushed',
    can: () => false,
    to: members,
    do: async (site, name) => void (await sh(site, name, 'ip route flush dev cpn0')),
  }),
  happening({
    what: 'the peers are removed from the device',
    to: members,
    do: async (site, name) =>
      void (await sh(site, name, 'for each in $(wg show cpn0 peers); do wg set cpn0 peer "$each" remove; done')),
  }),
  happening({
    what: 'the key is rotated',
    to: members,
    do: async (site, name) => void (await site.host(name).cpn(['rotate-key'])),
  }),
  happening({
    what: 'the host leaves, and joins again',
    to: members,
    can: (model, name) =>
      model.present.has(name) &&
      !model.elsewhere.has(name) &&
      ((connectors as readonly Member[]).includes(name) ? isSpare(model, name as Connector) : true),
    async do(site, name, model) {
      if (name === 'origin' || name === 'laptop') site.endSession();
      await site.stopDaemon(name);
      await site.host(name).cpn(['leave', '--yes', '--verify']);
      model.drained.delete(name as Connector);
      await site.join(name);
    },
  }),
  happening({
    what: 'the power fails',
    to: connectors,
    can: (model, name) => model.present.has(name) && isSpare(model, name),
    async do(site, name, model) {
      await site.host(name).powerOff();
      await site.stopDaemon(name);
      model.dockers.delete(name);
      model.present.delete(name);
    },
  }),
  happening({
    what: 'the power comes back',
    to: connectors,
    can: (model, name) => !model.present.has(name),
    async do(site, name, model) {
      await site.host(name).boot();
      await site.startDaemon(name);
      model.present.add(name);
    },
  }),
  happening({
    what: 'the WAN is gone for a while',
    to: members,
    async do(site, name) {
      await site.host(name).uplink.cut();
      await sh(site, name, 'sleep 2');
      await site.host(name).uplink.restore();
    },
  }),
  happening({
    what: 'the cable is pulled, and put in again',
    to: members,
    async do(site, name) {
      await site.host(name).uplink.unplug();
      await site.host(name).uplink.restore();
    },
  }),
  happening({
    what: 'the host gets another address on the WAN',
    to: connectors,
    async do(site, name) {
      const host = site.host(name);
      const number = name === 'edge-1' ? 1 : 2;
      const [old] = /203\.0\.113\.\d+/.exec(site.flags[name].join(' ')) ?? [''];
      const next = old === `203.0.113.${30 + number}` ? `203.0.113.${130 + number}` : `203.0.113.${30 + number}`;
      await sh(site, name, `ip address add ${next}/24 dev eth0`);
      await host.cpn(['set', '--endpoint', `${next}:51820`]);
      await sh(site, name, `ip address del ${old}/24 dev eth0; ip address replace ${next}/24 dev eth0`);
      site.flags[name] = ['--type', 'connector', '--endpoint', `${next}:51820`];
      await site.aimStranger(name, next);
    },
  }),
  happening({
    what: 'the peer is renamed, and back',
    to: members,
    async do(site, name) {
      for (const [from, to] of [
        [name, `${name}-renamed`],
        [`${name}-renamed`, name],
      ] as const) {
        await site.center.controlPlane.cpn(['peer', 'update', 'office', from, '--name', to]);
      }
    },
  }),
  happening({
    what: 'another listen port, and back to any',
    to: ['laptop'],
    async do(site, name) {
      for (const port of ['51999', 'any']) await site.host(name).cpn(['set', '--listen-port', port]);
    },
  }),
  happening({
    what: 'another resolver',
    to: members,
    async do(site, name) {
      const resolver = `203.0.113.${name.length + 70}`;
      await writeFile(
        join(site.host(name).etcDir, 'resolv.conf'),
        `nameserver ${resolver}\noptions timeout:1 attempts:1\n`,
      );
    },
  }),
  happening({
    what: 'another default route',
    to: ['edge-1', 'edge-2', 'origin'],
    do: async (site, name) => void (await sh(site, name, 'ip route replace default via 203.0.113.66 dev eth0')),
  }),
  happening({
    what: 'rules like those of ufw, and without them again',
    to: members,
    async do(site, name) {
      const script = `nft list table inet ufwlike >/dev/null 2>&1 && exec nft delete table inet ufwlike; exec nft -f -`;
      await site.host(name).exec(['sh', '-c', script], { input: strictInput });
    },
  }),
  happening({
    what: 'docker starts',
    to: connectors,
    async do(site, name, model) {
      model.dockers.add(name);
      await site.host(name).exec(['sh', '-c', dockerLike], { input: dockerRules });
    },
  }),
  happening({
    what: 'the connector is drained',
    to: connectors,
    can: (model, name) => model.present.has(name) && !model.drained.has(name) && isSpare(model, name),
    async do(site, name, model) {
      await site.host(name).cpn(['drain', '--timeout', '30']);
      model.drained.add(name);
    },
  }),
  happening({
    what: 'the connector is put back into service',
    to: connectors,
    can: (model, name) => model.present.has(name) && model.drained.has(name),
    async do(site, name, model) {
      await site.host(name).cpn(['drain', '--undo']);
      model.drained.delete(name);
    },
  }),
  happening({
    what: 'the LAN is advertised no more, or again',
    to: ['origin'],
    can: () => true,
    async do(site, _, model) {
      model.isLanRouted = !model.isLanRouted;
      await site.center.owner.setRoutes(site.center.network, model.isLanRouted ? [lanRoute] : []);
    },
  }),
  happening({
    what: 'the host joins a second network, or leaves it',
    to: ['origin', 'laptop'],
    async do(site, name, model) {
      if (model.elsewhere.delete(name)) await site.host(name).cpn(['leave', second.name, '--yes', '--verify']);
      else {
        await site.joinSecond(name);
        model.elsewhere.add(name);
      }
    },
  }),
  happening({
    what: 'a key is made and the control plane is looked at',
    to: ['origin'],
    can: () => true,
    do: async (site) => void (await makeKey(site.center.controlPlane, 'office', `key-${Math.random()}`)),
  }),
];

/** Each step with its time, for long runs by hand. */
const tellsSteps = process.env.CPN_DAY_TELL !== undefined;

/** A happening to a host as a command of fast-check. */
class Step implements fc.AsyncCommand<Model, Site> {
  readonly happening: Happening<Member>;
  readonly name: Member;

  constructor(each: Happening<Member>, name: Member) {
    this.happening = each;
    this.name = name;
  }

  check(model: Readonly<Model>): boolean {
    return this.happening.can?.(model, this.name) ?? model.present.has(this.name);
  }

  async run(model: Model, site: Site): Promise<void> {
    const begun = performance.now();
    try {
      await this.happening.do(site, this.name, model);
      await site.settle(model);
      if (tellsSteps) process.stdout.write(`  ${this}: ${((performance.now() - begun) / 1000).toFixed(1)} s\n`);
    } catch (error) {
      throw new Error(`after "${this}"`, { cause: error });
    }
  }

  toString(): string {
    return `${this.name}: ${this.happening.what}`;
  }
}

/** Any happening, to any host that it can happen to. */
export const steps: fc.Arbitrary<fc.AsyncCommand<Model, Site>>[] = happenings.map((each) =>
  fc.constantFrom(...each.to).map((name) => new Step(each, name)),
);
