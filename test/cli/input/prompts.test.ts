import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { confirm, confirmByName } from '../../../src/cli/input/confirm.ts';
import { apiFlags, yesFlag } from '../../../src/cli/input/flags.ts';
import { Input } from '../../../src/cli/input/input.ts';
import { ownPasswordFlag, withOwnPassword } from '../../../src/cli/input/own-password.ts';
import { hasTerminal, obtainPassword } from '../../../src/cli/input/password.ts';
import * as prompts from '../../../src/cli/input/prompt.ts';
import { readPrivateFile, readSecret, readSecretFile } from '../../../src/cli/input/secrets.ts';
import { readCaFile, withEnvironmentProxy } from '../../../src/cli/input/service-address.ts';
import type { Secret } from '../../../src/core/crypto/secret.ts';
import { Refused, WrongUsage } from '../../../src/core/errors/index.ts';

let folder: string;
let said: string;
const streams = [process.stdin, process.stderr] as const;
const wereTerminals = streams.map((stream) => stream.isTTY);
const setTerminal = (...are: readonly [boolean, boolean]) =>
  streams.forEach((stream, at) => void Object.assign(stream, { isTTY: are[at] }));
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-prompts-'));
  said = '';
  setTerminal(true, true);
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    said += String(text);
    return true;
  });
});
afterEach(async () => {
  vi.restoreAllMocks();
  streams.forEach((stream, at) => void Object.assign(stream, { isTTY: wereTerminals[at] }));
  await rm(folder, { recursive: true });
});

/** Types these answers, one per prompt; null for Ctrl-C. */
function type(...answers: (string | null)[]) {
  const prompted = vi.spyOn(prompts, 'prompt').mockResolvedValue(null);
  for (const answer of answers) prompted.mockResolvedValueOnce(answer);
  return prompted;
}

const inputOf = (given: object = {}) => new Input({ ...given }, yesFlag, {});

describe('a confirmation', () => {
  it.each([
    ['y', true],
    [' YES ', true],
    ['n', false],
    ['No', false],
    [null, false],
  ])('is given by %j: %j', async (answer, isGiven) => {
    type(answer);
    expect(await confirm('Remove it?', inputOf())).toBe(isGiven);
    expect(said).toBe(isGiven ? '' : 'nothing was done\n');
  });

  it('is not given by a word that is neither yes nor no', async () => {
    const prompted = type('y');
    await confirm('Remove it?', inputOf());
    const validate = prompted.mock.calls[0]?.[1].validate;
    expect(['y', ' Yes', 'no', 'N'].map((typed) => validate?.(typed))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    for (const typed of ['', 'yes please', 'ja', undefined]) expect(validate?.(typed)).toBe('type y or n');
  });

  it('by a name is given by any of the names as it is shown, and by nothing else', async () => {
    const names: [string, ...string[]] = ['off\u001bice ', 'cpn0', '7'];
    for (const [answer, isGiven] of [
      ['off\ufffdice', true],
      [' cpn0 ', true],
      ['7', true],
      ['yes', false],
      ['', false],
      [null, false],
    ] as const) {
      const prompted = type(answer);
      expect([answer, await confirmByName('Leave it?', names, inputOf())]).toEqual([answer, isGiven]);
      const [, { message, validate }] = prompted.mock.calls.at(-1) as Parameters<typeof prompts.prompt>;
      expect(message).toBe('Leave it? (type off\ufffdice to confirm)');
      expect(validate?.(answer ?? '') === undefined).toBe(isGiven);
      prompted.mockReset();
    }
  });

  it('needs no terminal with --yes, and is refused without either', async () => {
    setTerminal(false, true);
    const prompted = type();
    expect(await confirm('Remove it?', inputOf({ yes: true }))).toBe(true);
    expect(await confirmByName('Remove it?', ['x'], inputOf({ yes: true }))).toBe(true);
    await expect(confirm('Remove it?', inputOf())).rejects.toThrow('to confirm, add --yes');
    expect(prompted).not.toHaveBeenCalled();
  });
});

it.each([
  [true, true, true],
  [true, false, false],
  [false, true, false],
])('a terminal for prompts has input (%j) and errors (%j): %j', (input, errors, isThere) => {
  setTerminal(input, errors);
  expect(hasTerminal()).toBe(isThere);
});

describe('a password', () => {
  const flags = { 'password-file': { kind: 'text', summary: '' } } as const;
  const empty = new Input({}, flags, {});

  it('that is new is typed twice alike', async () => {
    type('first', 'second');
    await expect(obtainPassword(empty, { isNew: true })).rejects.toThrow('the two passwords differ');
    vi.restoreAllMocks();
    type('first', 'first');
    expect((await obtainPassword(empty, { isNew: true })).reveal()).toBe('first');
    vi.restoreAllMocks();
    const prompted = type('first');
    expect((await obtainPassword(empty)).reveal()).toBe('first');
    expect(prompted).toHaveBeenCalledTimes(1);
  });

  it.each(['', null])('that is %j is none', async (typed) => {
    type(typed);
    await expect(obtainPassword(empty)).rejects.toThrow('no password was given');
  });

  it('of a file is asked for by no prompt, and is missing without a terminal', async () => {
    await writeFile(join(folder, 'password'), 'from a file\n', { mode: 0o600 });
    const prompted = type();
    const input = new Input({ 'password-file': join(folder, 'password') }, flags, {});
    expect((await obtainPassword(input, { isNew: true })).reveal()).toBe('from a file');
    setTerminal(true, false);
    await expect(obtainPassword(empty)).rejects.toThrow('--password-file is missing');
    expect(prompted).not.toHaveBeenCalled();
  });
});

describe('the own password of a user', () => {
  const proof = { flag: 'own-password-file', field: 'current_password', what: 'a user' };
  const refusal = (fields: string[], status = 422) =>
    new Refused(status, 'making the user', 'no', null, {
      fields: fields.map((field) => ({ field, rule: 'is required' })),
    });
  const run = async (given: object, ...refusals: Error[]) => {
    const sent: (string | undefined)[] = [];
    const request = async (password?: Secret) => {
      sent.push(password?.reveal());
      const refused = refusals.shift();
      if (refused) throw refused;
      return 'made';
    };
    const input = new Input({ ...given }, ownPasswordFlag, {});
    const result = await withOwnPassword(input, proof, request).catch((error: Error) => error);
    return { sent, result };
  };

  it('is sent at once where a flag has it', async () => {
    await writeFile(join(folder, 'own'), 'mine', { mode: 0o600 });
    expect(await run({ 'own-password-file': join(folder, 'own') })).toEqual({ sent: ['mine'], result: 'made' });
  });

  it('is asked for once the control plane requires it, and only then', async () => {
    const prompted = type('typed');
    expect(await run({})).toEqual({ sent: [undefined], result: 'made' });
    expect(prompted).not.toHaveBeenCalled();
    expect(await run({}, refusal(['current_password']))).toEqual({ sent: [undefined, 'typed'], result: 'made' });
  });

  it('is not asked for after another refusal', async () => {
    const prompted = type('typed');
    for (const error of [refusal(['email']), refusal([], 403), new Error('no')]) {
      expect(await run({}, error)).toEqual({ sent: [undefined], result: error });
    }
    expect(prompted).not.toHaveBeenCalled();
  });

  it.each([
    [false, true],
    [true, false],
  ])('is needed in a file without a terminal (input %j, errors %j)', async (...are) => {
    setTerminal(...are);
    const { sent, result } = await run({}, refusal(['current_password']));
    expect(sent).toEqual([undefined]);
    expect(result).toBeInstanceOf(WrongUsage);
    expect(String(result)).toContain('give --own-password-file, or run "cpn login" again');
  });
});

describe('a file with a secret', () => {
  const at = (name: string) => join(folder, name);
  const make = async (mode: number, text = 'secret\n') => {
    await writeFile(at('file'), text);
    await chmod(at('file'), mode);
    return at('file');
  };

  it.each([0o600, 0o400, 0o640, 0o750])('of a service may have the mode %o of root', async (mode) => {
    expect((await readPrivateFile(await make(mode), 'the key')).reveal()).toBe('secret');
  });

  it.each([0o644, 0o660, 0o602, 0o601])('of a service is refused with the mode %o', async (mode) => {
    const path = await make(mode);
    await expect(readPrivateFile(path, 'the key')).rejects.toThrow(`type: chmod 600 ${path}`);
  });

  it.each([
    [0o600, false],
    [0o640, false],
    [0o604, true],
    [0o602, true],
  ])('with the mode %o is warned about: %j', async (mode, isWarned) => {
    await readSecretFile(await make(mode), 'the key');
    expect(said.includes('other users can read or write')).toBe(isWarned);
  });

  it('is read to its end, up to 64 KiB, and never shown', async () => {
    const most = 'x'.repeat(64 * 1024);
    expect((await readSecretFile(await make(0o600, most), 'the key')).reveal()).toBe(most);
    await expect(readSecretFile(await make(0o600, `${most}x`), 'the key')).rejects.toThrow(
      'the key is longer than 64 KiB',
    );
    await expect(readSecretFile('/dev/zero', 'the key')).rejects.toThrow('the key is longer than 64 KiB');
    await expect(readSecretFile(await make(0o600, ' \n'), 'the key')).rejects.toThrow('is empty');
    await expect(readSecret('file:/nonexistent', 'the key')).rejects.toThrow(
      'cannot be read from /nonexistent (ENOENT)',
    );
  });
});

describe('how a control plane is reached', () => {
  const service = { url: 'https://cp.example.net', insecureHttp: false };
  const environment = { HTTPS_PROXY: 'http://proxy.example.net:3128' };

  it('is by the proxy of the environment only where the service has no setting of its own', () => {
    expect(withEnvironmentProxy(service, environment).proxy).toMatchObject({ from: 'HTTPS_PROXY' });
    expect(withEnvironmentProxy({ ...service, proxy: 'none' }, environment).proxy).toBe('none');
    expect(withEnvironmentProxy(service, {})).toEqual(service);
  });

  it('has the CAs of a file, those of this machine with "none", or no setting', async () => {
    const read = (given: object) => readCaFile(new Input({ ...given }, apiFlags, {}));
    expect([await read({}), await read({ 'ca-file': 'none' })]).toEqual([undefined, null]);
    await writeFile(join(folder, 'ca.pem'), 'x'.repeat(64 * 1024 + 1));
    await expect(read({ 'ca-file': join(folder, 'ca.pem') })).rejects.toThrow('is larger than 64 KiB');
    await writeFile(join(folder, 'ca.pem'), 'no certificate');
    await expect(read({ 'ca-file': join(folder, 'ca.pem') })).rejects.toThrow('--ca-file');
  });
});
