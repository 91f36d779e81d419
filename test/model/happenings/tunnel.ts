/** What happens to the interface of a host, to its key and its port. */
import { members } from '../model.ts';
import { happening } from './happening.ts';

export const tunnelHappenings = [
  happening({
    what: 'the interface is set down',
    to: members,
    do: ({ site }, name) => site.sh(name, 'ip link set cpn0 down'),
  }),
  happening({
    what: 'the interface is deleted',
    to: members,
    do: ({ site }, name) => site.sh(name, 'ip link delete cpn0'),
  }),
  happening({
    what: 'the routes into the tunnel are flushed',
    to: members,
    do: ({ site }, name) => site.sh(name, 'ip route flush dev cpn0; ip route flush table all dev cpn0 proto 157'),
  }),
  happening({
    what: 'the peers are removed from the device',
    to: members,
    do: ({ site }, name) =>
      site.sh(name, 'for each in $(wg show cpn0 peers); do wg set cpn0 peer "$each" remove; done'),
  }),
  happening({
    what: 'the key is rotated',
    to: members,
    do: ({ site }, name) => site.cpn(name, ['rotate-key']),
  }),
  happening({
    what: 'another listen port, and back to any',
    to: ['laptop'],
    async do({ site }, name) {
      for (const port of ['51999', 'any']) await site.cpn(name, ['set', 'office', '--listen-port', port]);
    },
  }),
];
