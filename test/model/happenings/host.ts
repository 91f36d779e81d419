/** What happens to a host as a whole. */
import { connectors, isConnector, isSpare, members } from '../model.ts';
import { happening } from './happening.ts';

export const hostHappenings = [
  happening({
    what: 'the host leaves, and joins again',
    to: members,
    can: (model, name) =>
      model.present.has(name) && !model.elsewhere.has(name) && (!isConnector(name) || isSpare(model, name)),
    async do({ site, invariants }, name, model) {
      if (name === 'origin' || name === 'laptop') invariants.endSession();
      await site.stopDaemon(name);
      await site.cpn(name, ['leave', '--yes', '--verify']);
      if (isConnector(name)) model.drained.delete(name);
      await site.join(name);
    },
  }),
  happening({
    what: 'the power fails',
    to: connectors,
    can: (model, name) => model.present.has(name) && isSpare(model, name),
    async do({ site }, name, model) {
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
    async do({ site }, name, model) {
      const host = site.host(name);
      await host.boot();
      const now = site.addresses[name];
      if (now !== host.address) {
        await site.sh(name, `ip address delete ${host.address}/24 dev eth0; ip address add ${now}/24 dev eth0`);
      }
      await site.startDaemon(name);
      model.present.add(name);
    },
  }),
  happening({
    what: 'another resolver',
    to: members,
    do: ({ site }, name) => site.setResolver(name, `203.0.113.${name.length + 70}`),
  }),
  happening({
    what: 'another default route',
    to: ['edge-1', 'edge-2', 'origin'],
    do: ({ site }, name) => site.sh(name, 'ip route replace default via 203.0.113.66 dev eth0'),
  }),
];
