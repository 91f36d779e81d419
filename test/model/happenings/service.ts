/** What an administrator does, and what happens to the control plane. */
import { cp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeKey } from '../../lab/control-plane.ts';
import { connectors, isSpare, type Lan, lans, type Model, members } from '../model.ts';
import { type Site, second } from '../site.ts';
import { type Day, happening } from './happening.ts';

/** Of happenings to the control plane: they are drawn once. */
const once = { to: ['origin'], can: () => true } as const;

const planeFolder = (site: Site) => join(site.center.controlPlane.host.folder, 'data');

/** Advertises a LAN, or no more. */
export async function toggleRoute({ site }: Day, model: Model, lan: Lan): Promise<void> {
  if (!model.routed.delete(lan)) model.routed.add(lan);
  const routes = [...model.routed].map((each) => lans[each].prefix);
  await site.center.owner.setRoutes(site.center.network, routes);
}

export const serviceHappenings = [
  happening({
    what: 'the control plane is restarted',
    ...once,
    async do({ site }) {
      await site.stopPlane();
      await site.startPlane();
    },
  }),
  happening({
    what: 'the control plane is killed, and started again',
    ...once,
    async do({ site }) {
      await site.stopPlane('KILL');
      await site.startPlane();
    },
  }),
  happening({
    what: 'the control plane is moved: its data is copied',
    ...once,
    async do({ site }) {
      const data = planeFolder(site);
      await site.stopPlane();
      await cp(data, `${data}-copy`, { recursive: true });
      await rm(data, { recursive: true });
      await rename(`${data}-copy`, data);
      await site.startPlane();
    },
  }),
  happening({
    what: 'the control plane is restored from a backup, and what was changed since is lost, a new key too',
    to: members,
    async do({ site }, name) {
      const { controlPlane } = site.center;
      const data = planeFolder(site);
      const copy = join(controlPlane.host.homeDir, 'backup.db');
      await rm(copy, { force: true });
      await controlPlane.cpn(['control-plane', 'backup', copy, '--data', data]);
      await site.cpn(name, ['rotate-key', 'office']);
      await controlPlane.cpn(['peer', 'update', 'office', name, '--name', `${name}-lost`]);
      await controlPlane.cpn(['network', 'update', 'office', '--description', 'lost']);
      await site.stopPlane();
      for (const file of ['control-plane.db', 'control-plane.db-wal', 'control-plane.db-shm']) {
        await rm(join(data, file), { force: true });
      }
      await cp(copy, join(data, 'control-plane.db'));
      await site.startPlane();
    },
  }),
  happening({
    what: 'the peer is renamed, and back',
    to: members,
    async do({ site }, name) {
      for (const [from, to] of [
        [name, `${name}-renamed`],
        [`${name}-renamed`, name],
      ] as const) {
        await site.center.controlPlane.cpn(['peer', 'update', 'office', from, '--name', to]);
      }
    },
  }),
  happening({
    what: 'the connector is drained',
    to: connectors,
    can: (model, name) => model.present.has(name) && !model.drained.has(name) && isSpare(model, name),
    async do({ site }, name, model) {
      await site.cpn(name, ['drain', '--yes', '--timeout', '30']);
      model.drained.add(name);
    },
  }),
  happening({
    what: 'the connector is put back into service',
    to: connectors,
    can: (model, name) => model.present.has(name) && model.drained.has(name),
    async do({ site }, name, model) {
      await site.cpn(name, ['drain', '--undo']);
      model.drained.delete(name);
    },
  }),
  happening({
    what: 'the LAN is advertised no more, or again',
    ...once,
    do: (day, _, model) => toggleRoute(day, model, 'first'),
  }),
  happening({
    what: 'a second LAN is advertised, or no more',
    ...once,
    do: (day, _, model) => toggleRoute(day, model, 'second'),
  }),
  happening({
    what: 'the host joins a second network, or leaves it',
    to: ['origin', 'laptop'],
    async do({ site }, name, model) {
      if (model.elsewhere.delete(name)) await site.cpn(name, ['leave', second.name, '--yes', '--verify']);
      else {
        await site.joinSecond(name);
        model.elsewhere.add(name);
      }
    },
  }),
  happening({
    what: 'a key is made and the control plane is looked at',
    ...once,
    do: ({ site }) => makeKey(site.center.controlPlane, 'office', `key-${Math.random()}`),
  }),
];
