import { afterEach, describe, expect, test, vi } from 'vitest';
import { connectAdminService } from '../../../src/api/admin-service.ts';
import { updateNetwork } from '../../../src/cli/commands/network-change.ts';
import { Input } from '../../../src/cli/input/input.ts';
import { prepareRoutes, readRouteFlags } from '../../../src/cli/parse/route-flags.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { WrongUsage } from '../../../src/core/errors/index.ts';
import { networkBody, unhurried } from '../../api/samples.ts';
import { json, type Reply, serve } from '../../api/server.ts';
import { describeForeign } from '../../plain/foreign-description.ts';

afterEach(() => vi.restoreAllMocks());

const [lan, lab, shop] = ['192.168.1.0/24', '192.168.2.0/24', '192.168.3.0/24'] as const;
const read = (flags: object) => new Input({ network: '7', yes: true, ...flags }, updateNetwork.flags, {});

/** What is prepared for a service with this description, and what is said. */
async function prepare(flags: object, description: Reply) {
  const said: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => said.push(String(text)) > 0);
  const { address } = await serve((response, asked) => {
    const reply = asked.path.startsWith('/docs') ? description : json(200, networkBody({ routes: [lan, lab] }));
    return reply(response, asked);
  });
  const service = connectAdminService(address, new Secret('token-sample'), unhurried().options);
  const input = read(flags);
  const changes = await prepareRoutes(service, 7, readRouteFlags(input), input);
  return { changes, said: said.join('') };
}

const described = json(200, describeForeign({ changeNetwork: ['add_routes', 'expected_routes'] }));
const undescribed = json(404, {});

describe('the routes of a network', () => {
  test('are replaced under the expectation of those that were shown', async () => {
    const { changes, said } = await prepare({ route: [lab, shop] }, described);
    expect(changes).toEqual({ routes: [lab, shop], expected_routes: [lan, lab] });
    expect(said).toBe(`adds ${shop}\nremoves ${lan}\n`);
  });

  test('are replaced as ever where a service knows no expectation', async () => {
    expect((await prepare({ routes: false }, undescribed)).changes).toEqual({ routes: [] });
  });

  test('are added and removed one by one', async () => {
    const { changes, said } = await prepare({ 'add-route': [shop], 'remove-route': [lan] }, described);
    expect([changes, said]).toEqual([{ add_routes: [shop], remove_routes: [lan] }, '']);
  });

  test('are edited by no service that does not describe it', async () => {
    const attempt = prepare({ 'add-route': [shop] }, undescribed);
    await expect(attempt).rejects.toThrow(
      'this control plane cannot add or remove single routes; name all routes of the',
    );
  });

  test.each([
    { route: [lan], 'add-route': [shop] },
    { routes: false, 'remove-route': [lan] },
    { routes: false, route: [lan] },
  ])('are not both replaced and edited: %j', (flags) => {
    expect(() => readRouteFlags(read(flags))).toThrow(WrongUsage);
  });
});

test('a conflict says what changed since, and what to do', async () => {
  const message = `the routes of the network have changed: route ${shop} was added`;
  const { address } = await serve(json(409, { message }));
  const service = connectAdminService(address, new Secret('token-sample'), unhurried().options);
  const changes = { routes: [lan], expected_routes: [lan, lab] };
  await expect(service.updateNetwork(7, changes)).rejects.toThrow(
    `refused (409): ${message}; nothing was changed; run it again, or use --add-route and --remove-route`,
  );
});
