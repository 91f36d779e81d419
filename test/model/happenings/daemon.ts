/** What happens to the daemon of a host. */
import { members } from '../model.ts';
import { happening } from './happening.ts';

export const daemonHappenings = [
  happening({
    what: 'the daemon is restarted',
    to: members,
    async do({ site }, name) {
      await site.stopDaemon(name);
      await site.startDaemon(name);
    },
  }),
  happening({
    what: 'the daemon is killed, and started again',
    to: members,
    async do({ site }, name) {
      await site.stopDaemon(name, 'KILL');
      await site.startDaemon(name);
    },
  }),
  happening({
    what: 'the daemon sleeps for a while',
    to: members,
    async do({ site }, name) {
      const { process } = site.daemon(name);
      process.signal('SIGSTOP');
      await site.sh(name, 'sleep 3');
      process.signal('SIGCONT');
    },
  }),
  happening({
    what: 'the daemon is that of the previous version for a while, and upgraded',
    to: members,
    async do({ site, invariants }, name, model) {
      await site.stopDaemon(name);
      // That version keeps no neighbour from a tunnel address.
      model.isLeakExcused = true;
      await site.startPreviousDaemon(name);
      await invariants.awaitPeers(name, model);
      await site.stopDaemon(name);
      await site.startDaemon(name);
    },
  }),
  happening({
    what: 'nothing, and nothing is repaired',
    to: ['origin'],
    can: () => true,
    do: ({ invariants }, _, model) => invariants.awaitQuiet(model),
  }),
];
