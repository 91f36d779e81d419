import { describe, expect, it } from 'vitest';
import { passNetwork } from '../../../src/app/pass.ts';
import { DriftWatch } from '../../../src/app/run/drift-watch.ts';
import { PeerWatch } from '../../../src/app/run/peer-watch.ts';
import { PlaceWatch } from '../../../src/app/run/place-watch.ts';
import { survey } from '../../../src/app/survey.ts';
import { added, removed } from '../../../src/core/change.ts';
import { address, dialled, keyPair, peer, surroundings } from '../../core/samples.ts';
import { Desk, joinedTo, mapAt } from '../desk.ts';

const state = joinedTo(mapAt('"1"', [peer(2, { endpoint: dialled(2) })]));
const route = [removed('route', '192.168.50.0/24', 'cpn0', 'gone')];

const notes = (desk: Desk) => desk.tools.store.readNotes('cpn0');

describe('drift that keeps coming back', () => {
  it('is told once in the log, with who may be behind it, and stands in the notes until it stays away', async () => {
    const desk = await Desk.with(state);
    const watch = new DriftWatch(desk.tools, 'cpn0');
    for (let repair = 0; repair < 6; repair += 1) {
      desk.seconds += watch.pauseBefore(route);
      await watch.note(route);
    }
    const warnings = desk.logged.filter(({ level }) => level === 'warn');
    expect(warnings).toEqual([
      {
        level: 'warn',
        message: 'drift keeps coming back',
        facts: { interface: 'cpn0', targets: ['route 192.168.50.0/24'], suspects: ['NetworkManager (pid 7)'] },
      },
    ]);
    expect((await notes(desk)).troubles).toEqual([expect.stringContaining('perhaps by NetworkManager (pid 7)')]);
    desk.seconds += 600;
    await watch.note([]);
    expect((await notes(desk)).troubles).toEqual([]);
  });

  it('is known too when it is back before anybody looked', async () => {
    const desk = await Desk.with(state);
    const watch = new DriftWatch(desk.tools, 'cpn0');
    for (let repair = 0; repair < 3; repair += 1) {
      expect(watch.pauseBefore(route)).toBe(0);
      await watch.noteUndone();
    }
    expect(watch.pauseBefore(route)).toBeGreaterThan(0);
  });

  it('is left alone for ten minutes where its repair was taken back, unless it becomes another', async () => {
    const desk = await Desk.with(state);
    const watch = new DriftWatch(desk.tools, 'cpn0');
    const more = [...route, removed('route', '192.168.60.0/24', 'cpn0', 'gone')];
    for (const drift of [route, more]) {
      expect(watch.pauseBefore(drift)).toBe(0);
      await watch.holdBack('nobody was heard');
    }
    expect([route, more].map((drift) => watch.pauseBefore(drift))).toEqual([600, 600]);
    await watch.note([], true);
    expect((await notes(desk)).troubles).toEqual(['nobody was heard']);
    desk.seconds += 600;
    expect(watch.pauseBefore(route)).toBe(0);
    await watch.note([]);
    expect((await notes(desk)).troubles).toEqual([]);
  });
});

describe('drift of packet rules', () => {
  it('is repaired at once although a repair with it was rolled back', async () => {
    const desk = await Desk.with(state);
    const watch = new DriftWatch(desk.tools, 'cpn0');
    const drift = [...route, added('firewall', 'inet cpn_cpn0', [], 'a connector forwards packets')];
    expect(watch.pauseBefore(drift)).toBe(0);
    await watch.holdBack('no peer answered');
    expect(watch.pauseBefore(drift)).toBe(0);
  });
});

describe('a peer that does not answer', () => {
  it('is noted although its handshake is fresh, with what was received of it, until it is heard', async () => {
    const desk = await Desk.with(state);
    await passNetwork(desk.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
    const watch = new PeerWatch(desk.tools, 'cpn0');
    const see = async (rxBytes: number, txBytes: number) => {
      desk.seconds += 20;
      const latestHandshake = Math.floor(desk.tools.now().getTime() / 1000) - 60;
      desk.touch(2, { rxBytes, txBytes, latestHandshake });
      await watch.note(await survey(desk.tools, await desk.state()));
      return (await notes(desk)).silent;
    };
    expect(await see(100, 100)).toEqual({});
    expect(await see(100, 228)).toEqual({});
    expect(await see(100, 356)).toEqual({ [keyPair(2).publicKey]: 100 });
    expect(await see(132, 388)).toEqual({});
  });

  it.each([25, null])(
    'is noted without a session too where keepalives should have renewed it: %s',
    async (keepalive) => {
      const desk = await Desk.with(state);
      await passNetwork(desk.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
      const watch = new PeerWatch(desk.tools, 'cpn0');
      const latestHandshake = Math.floor(desk.tools.now().getTime() / 1000) - 200;
      for (const txBytes of [100, 248, 396]) {
        desk.touch(2, { rxBytes: 100, txBytes, latestHandshake, keepalive });
        await watch.note(await survey(desk.tools, await desk.state()));
        desk.seconds += 20;
      }
      expect((await notes(desk)).silent).toEqual(keepalive === null ? {} : { [keyPair(2).publicKey]: 100 });
    },
  );
});

describe('another place', () => {
  const seen = (...places: (typeof surroundings)[]) => {
    const watch = new PlaceWatch();
    return places.map((place) => watch.hasChanged(place));
  };

  it('is one with another subnet, gateway or resolver', () => {
    expect(seen(surroundings, { ...surroundings, connected: [] })).toEqual([false, true]);
    expect(seen(surroundings, { ...surroundings, gateways: [] })).toEqual([false, true]);
    expect(seen(surroundings, { ...surroundings, resolvers: [address('192.0.2.53')] })).toEqual([false, true]);
  });

  it('is not one with another SSH session', () => {
    expect(
      seen(surroundings, { ...surroundings, sshClients: [{ address: address('192.0.2.7'), local: null }] }),
    ).toEqual([false, false]);
  });
});
