import { expect, test } from 'vitest';
import { confirmListener } from '../../src/app/access.ts';

const service = { url: 'http://127.0.0.1:8787', insecureHttp: false };
const of = (user: number, description: string, isLoginUser = false, previousUser: string | null = null) => ({
  ...{ user, description, isLoginUser, previousUser },
});

async function confirm(found: ReturnType<typeof of> | null, before?: number) {
  const warnings: string[] = [];
  const tools = { findListeningUser: async () => found, warn: (text: string) => void warnings.push(text) };
  const { listener } = await confirmListener(tools, service, before);
  return { listener, warnings };
}

test('a user of a service is remembered without a word', async () => {
  expect(await confirm(of(990, 'user 990 (cpn)'))).toEqual({ listener: 990, warnings: [] });
  expect(await confirm(of(990, 'user 990 (cpn)'), 990)).toEqual({ listener: 990, warnings: [] });
});

test('a login user is remembered with a warning, once', async () => {
  expect(await confirm(of(1001, 'user 1001 (eve)', true))).toEqual({
    listener: 1001,
    warnings: [expect.stringMatching(/^user 1001 \(eve\) listens at http:\/\/127\.0\.0\.1:8787; check that/)],
  });
  expect(await confirm(of(1001, 'user 1001 (eve)', true), 1001)).toEqual({ listener: 1001, warnings: [] });
});

test('another user than before is remembered with a warning that names both', async () => {
  expect(await confirm(of(991, 'user 991', false, 'user 990 (cpn)'), 990)).toEqual({
    listener: 991,
    warnings: [expect.stringMatching(/^user 991 listens at .* now, and user 990 \(cpn\) did before; this command/)],
  });
});

test('what is remembered stays where no listener is visible', async () => {
  expect(await confirm(null, 990)).toEqual({ listener: 990, warnings: [] });
  expect(await confirm(null)).toEqual({ listener: undefined, warnings: [] });
});
