import { beforeEach, describe, expect, it } from 'vitest';
import { withNews } from '../../../src/app/news.ts';
import { passNetwork } from '../../../src/app/pass.ts';
import { NameFollower } from '../../../src/app/run/follow-names.ts';
import { type Survey, survey } from '../../../src/app/survey.ts';
import { parseEndpoint } from '../../../src/core/endpoint.ts';
import type { Resolved } from '../../../src/core/resolved.ts';
import { address, peer } from '../../core/samples.ts';
import { Desk, joinedTo, mapAt } from '../desk.ts';

const [old, moved] = [address('198.51.100.1'), address('198.51.100.2')];
const named = peer(2, { type: 'connector', endpoint: parseEndpoint('edge.example.net:51820') });
const resolved: Resolved = { 'edge.example.net': [old] };
const interval = 30;

let desk: Desk;
let follower: NameFollower;

/** A host whose one peer, reached by a name, made a handshake so many seconds ago. */
async function startWith(handshakeAge: number | null): Promise<void> {
  desk = await Desk.with(joinedTo(mapAt('"1"', [named]), { resolved }));
  await passNetwork(desk.tools, 'cpn0', { map: null, resolved: null }, { withinMs: 1 });
  desk.touch(2, { latestHandshake: handshakeAge === null ? null : now() - handshakeAge });
  desk.names['edge.example.net'] = [old];
  follower = new NameFollower(desk.tools, interval);
}

const now = () => Math.floor(desk.tools.now().getTime() / 1000);
const look = async (): Promise<Survey> => survey(desk.tools, await desk.state());
const follow = async () => follower.follow(await look());

describe('a name is asked for', () => {
  it.each([
    ['that was heard a moment ago', 10, 1],
    ['that was heard 135 s ago', 135 - interval, 1],
    ['that was not heard for longer than that', 135, 2],
    ['that was never heard', null, 2],
  ])('at the beginning, and an interval later again for a peer %s', async (_, age, times) => {
    await startWith(age);
    await follow();
    desk.seconds += interval;
    await follow();
    expect(desk.resolved).toHaveLength(times);
  });

  it('no more than once an interval, however often there is a pass', async () => {
    await startWith(null);
    for (let pass = 0; pass < 10; pass += 1) await follow();
    expect(desk.resolved).toHaveLength(1);
  });

  it('at once after everything was forgotten, though its peer is heard', async () => {
    await startWith(10);
    await follow();
    follower.forget();
    await follow();
    expect(desk.resolved).toHaveLength(2);
  });

  it('now and then in any case', async () => {
    await startWith(10);
    await follow();
    desk.seconds += 600;
    desk.touch(2, { latestHandshake: now() });
    await follow();
    expect(desk.resolved).toHaveLength(2);
  });
});

describe('an answer', () => {
  beforeEach(() => startWith(null));

  it('that is what is known is no news', async () => {
    expect(await follow()).toBeNull();
  });

  it('inside a route of the tunnel takes neither the route away nor the endpoint', async () => {
    const inside = address('192.168.50.10');
    expect((await look()).desired.routes).toContain('192.168.50.0/24');
    for (let time = 0; time < 20; time += 1) {
      desk.names['edge.example.net'] = [inside, address(`192.168.50.${100 + time}`)];
      expect(await follow()).toBeNull();
      desk.seconds += interval;
    }
    desk.names['edge.example.net'] = [inside, moved];
    expect(await follow()).toEqual({ 'edge.example.net': [moved, old] });
  });

  it('with another address is, and moves the peer there', async () => {
    desk.names['edge.example.net'] = [moved];
    const news = await follow();
    expect(news).toEqual({ 'edge.example.net': [moved, old] });
    const pass = await passNetwork(desk.tools, 'cpn0', { map: null, resolved: news }, { withinMs: 1 });
    expect(pass?.changes.map(({ kind }) => kind).sort()).toEqual(['file', 'peer']);
    expect(desk.actual.device?.peers[0]?.endpoint).toEqual({ host: moved, port: 51820 });
  });

  it('that does not come leaves the last address in force', async () => {
    desk.names = {};
    expect(await follow()).toBeNull();
    expect((await look()).desired.config.peers[0]?.endpoint).toEqual({ host: old, port: 51820 });
  });

  it('leaves a peer that roamed, and was heard lately, where it is', async () => {
    desk.names['edge.example.net'] = [moved];
    const news = await follow();
    const elsewhere = { host: address('192.0.2.9'), port: 4000 };
    desk.touch(2, { latestHandshake: now() - 10, endpoint: elsewhere });
    const next = withNews(await desk.state(), { map: null, resolved: news });
    expect((await survey(desk.tools, next)).steps).toEqual([]);
  });
});
