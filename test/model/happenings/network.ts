/** What happens to cables, addresses and networks around a host. */
import { connectors, isSpare, type Model, members } from '../model.ts';
import { happening } from './happening.ts';

/** The members that reach the LANs only through a connector. */
const users = ({ present }: Model) => (['origin', 'laptop'] as const).filter((name) => present.has(name));

export const networkHappenings = [
  happening({
    what: 'the WAN is gone for a while',
    to: members,
    async do({ site }, name) {
      await site.host(name).uplink.cut();
      await site.sh(name, 'sleep 2');
      await site.host(name).uplink.restore();
    },
  }),
  happening({
    what: 'the cable is pulled, and put in again',
    to: members,
    async do({ site }, name) {
      await site.host(name).uplink.unplug();
      await site.host(name).uplink.restore();
    },
  }),
  happening({
    what: 'the host gets another address on the WAN',
    to: connectors,
    async do({ site }, name) {
      const old = site.addresses[name];
      const { address } = site.host(name);
      const next = old === address ? address.replace('113.3', '113.13') : address;
      await site.sh(name, `ip address add ${next}/24 dev eth0`);
      await site.cpn(name, ['set', '--endpoint', `${next}:51820`]);
      // The secondary address goes with the primary one.
      await site.sh(name, `ip address del ${old}/24 dev eth0; ip address replace ${next}/24 dev eth0`);
      await site.moveConnector(name, next);
    },
  }),
  happening({
    what: 'the laptop roams: its NAT gets another address',
    to: ['laptop'],
    async do({ site }) {
      const script = `old=$(ip -o -4 address show dev eth0 | awk '{print $4}')
        next=203.0.113.44/24; [ "$old" = "$next" ] && next=203.0.113.45/24
        ip address delete "$old" dev eth0; ip address add "$next" dev eth0`;
      await site.nat.exec(['sh', '-c', script]);
    },
  }),
  happening({
    what: 'its LAN address changes',
    to: connectors,
    async do({ site }, name) {
      const script = `old=$(ip -o -4 address show dev eth1 | awk '{print $4}')
        case $old in *.10[12]/24) next=\${old%10?/24}\${old#*.10} ;; *) next=192.168.50.10\${old##*.} ;; esac
        ip address add "$next" dev eth1; ip address delete "$old" dev eth1; ip address replace "$next" dev eth1`;
      await site.sh(name, script);
    },
  }),
  happening({
    what: 'its LAN cable is pulled until the other connector serves, and put in again',
    to: connectors,
    can: (model, name) => model.present.has(name) && !model.drained.has(name) && isSpare(model, name),
    async do({ site, invariants }, name, model) {
      const cable = site.host(name).links[1];
      await cable?.unplug();
      if (model.routed.has('first')) await invariants.awaitLan('first', users(model));
      await cable?.restore();
    },
  }),
];
