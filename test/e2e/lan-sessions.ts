import { expect } from 'vitest';
import type { Host } from '../lab/host.ts';
import { awaitRoute, type DataCenter } from './data-center.ts';
import { NumberedSession } from './numbered-session.ts';
import { awaitReturn } from './relays.ts';

interface LanSessions {
  readonly center: DataCenter;
  /** The host at the other end of the sessions. */
  readonly origin: Host;
  /** The server's address in the network. */
  readonly address: string;
  /** Each connector with its address in the LAN. The first one is in service. */
  readonly connectors: readonly [readonly [Host, string], readonly [Host, string]];
  /** How often the connector in service dies. It returns each time, after the other took over. */
  readonly deaths: number;
}

/**
 * Opens sessions between a host and the server of a LAN, in both directions, and expects that they keep their addresses and survive each
 * death of a connector. The LAN sends its packets for the network to the connector in service, as a router pair does.
 */
export async function expectLanSessions({ center, origin, address, connectors, deaths }: LanSessions): Promise<void> {
  const { server } = center;
  const answerThrough = ([, lan]: readonly [Host, string]) =>
    server.exec(['ip', 'route', 'replace', '10.77.0.0/24', 'via', lan]);
  await awaitRoute(origin, connectors[0][0]);
  await answerThrough(connectors[0]);
  const own = center.address(origin);
  const sessions = [
    await NumberedSession.tcp(origin, address),
    await NumberedSession.ssh(origin, server, address),
    await NumberedSession.tcp(server, own),
    await NumberedSession.ssh(server, origin, own),
  ];
  expect(sessions.map(({ seen }) => seen)).toEqual([own, own, address, address]);

  let [dying, next] = connectors;
  for (let death = 0; death < deaths; death += 1) {
    await dying[0].uplink.cut();
    await awaitRoute(origin, next[0]);
    await answerThrough(next);
    for (const session of sessions) await session.goesOn();
    await dying[0].uplink.restore();
    await awaitReturn(origin, dying[0]);
    [dying, next] = [next, dying];
  }
  expect(await Promise.all(sessions.map((session) => session.end()))).toEqual(sessions.map(() => 'complete'));
}
