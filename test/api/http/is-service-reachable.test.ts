import { X509Certificate } from 'node:crypto';
import { createServer as createHttps } from 'node:https';
import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { probeService } from '../../../src/api/http/is-service-reachable.ts';
import { ofAuthority, openAuthority } from '../certificate-authority.ts';
import { failureOf } from '../samples.ts';
import { json, listen, serve, silent, trust } from '../server.ts';

describe('lookAtService', () => {
  test.each([200, 401, 404, 500])(
    'takes any answer, such as %i, and its clock, and sends no secret',
    async (status) => {
      const { address, asked } = await serve(json(status, {}, { date: 'Tue, 14 Nov 2023 22:13:20 GMT' }));
      expect(await probeService(address, 5_000)).toMatchObject({ date: 1_700_000_000 });
      expect(asked).toMatchObject([{ method: 'GET', path: '/', body: '' }]);
      expect(asked[0]?.headers.authorization).toBeUndefined();
    },
  );

  test('has no time where the reply has none', async () => {
    const { address } = await serve((response) => {
      response.sendDate = false;
      response.end();
    });
    expect((await probeService(address, 5_000)).date).toBeNull();
  });

  test('has the certificate of a service by TLS and its issuers', async () => {
    const { issue } = openAuthority();
    const root = issue({ name: 'Trusted Root', extensions: ofAuthority });
    trust(root.cert);
    const own = issue({ name: 'localhost', issuer: root, days: [-1, 10] });
    const { port } = await listen(createHttps(own, (_, response) => response.end()));
    const { certificates } = await probeService({ url: `https://localhost:${port}`, insecureHttp: false }, 5_000);
    const validTo = Date.parse(new X509Certificate(own.cert).validTo);
    expect(certificates).toMatchObject([{ subject: 'localhost', validTo }, { subject: 'Trusted Root' }]);
    const { address } = await serve(json(200, {}));
    expect(await probeService(address, 5_000)).not.toHaveProperty('certificates');
  });

  test('fails in time where no service answers', async () => {
    const { address } = await serve(silent);
    expect(await failureOf(probeService(address, 50))).toMatchObject({
      name: 'Unreachable',
      message: expect.stringContaining('no answer came within 0.05 s'),
    });
  });

  test('fails where no service listens, and where something else does', async () => {
    const { url } = await listen(createServer((socket) => socket.end('SSH-2.0-x\r\n')));
    expect(await failureOf(probeService({ url, insecureHttp: false }, 5_000))).toMatchObject({
      heard: true,
      remedy: expect.stringContaining('port'),
    });
    const closed = { url: 'http://127.0.0.1:1', insecureHttp: false };
    expect(await failureOf(probeService(closed, 5_000))).toMatchObject({
      name: 'Unreachable',
      remedy: 'check its address and port, and that it runs',
    });
  });
});
