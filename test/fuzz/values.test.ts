import { isIP } from 'node:net';
import fc from 'fast-check';
import IPCIDR from 'ip-cidr';
import { expect } from 'vitest';
import { parseField, toObject, typed } from '../../src/cli/api/fields.ts';
import { Input } from '../../src/cli/input/input.ts';
import { parseListenAddress } from '../../src/cli/input/listen-address.ts';
import { parsePeerEndpoint, parsePrivateRange, parseRoutes } from '../../src/control-plane/domain/network-rules.ts';
import { parseDatabaseUrl } from '../../src/control-plane/store/postgres/database-url.ts';
import { keyPairOf, parsePublicKey } from '../../src/core/crypto/keys.ts';
import { maskTokens, Secret } from '../../src/core/crypto/secret.ts';
import { InvalidValue, WrongUsage } from '../../src/core/errors/index.ts';
import { formatProbeTarget, parseProbeTarget } from '../../src/core/map/options.ts';
import {
  hostPrefix,
  maskPrefix,
  parseAddress,
  parsePrefix,
  parseRange,
  rangeOf,
  restorePrefix,
  tryParseAddress,
} from '../../src/core/net/cidr.ts';
import { formatEndpoint, parseEndpoint, parseHost } from '../../src/core/net/endpoint.ts';
import { parseLinkName } from '../../src/core/net/link-name.ts';
import { parseServiceAddress } from '../../src/core/net/service-address.ts';
import { readAddress } from '../../src/host/read-address.ts';
import { fuzz } from './fuzz.ts';
import { hostile, mutated, pumped } from './hostile-texts.ts';
import { bounded, unlessRefused } from './time-bound.ts';
import { addresses, keys, ranges } from './values.ts';

const survive = <Result>(parse: () => Result) => bounded(() => unlessRefused([InvalidValue, WrongUsage], parse));

/** A parsed value has one spelling, which parses as the same value. */
function expectOneSpelling<Value>(
  text: string,
  parse: (text: string) => Value,
  format: (value: Value) => string,
): void {
  const value = survive(() => parse(text));
  if (value === null) return;
  expect(format(value)).toMatch(/^[\x21-\x7e]+$/);
  expect(parse(format(value))).toEqual(value);
}

const asIs = (value: string) => value;
const addressTexts = mutated(fc.oneof(addresses, fc.ipV4Extended(), fc.ipV6()), 2);
const names = fc.oneof(
  fc.domain(),
  fc.constantFrom('edge_1.example', 'a', 'x-1.local', '1.2.3', '0x7f.1', 'a.b.', 'a..b'),
);

fuzz('an address has one spelling, and is one for the kernel too', 750, [addressTexts], (text) => {
  expectOneSpelling(text, parseAddress, asIs);
  expect(tryParseAddress(text) !== null).toBe(isIP(text) !== 0 && !text.includes('%'));
  expectOneSpelling(text, (given) => readAddress(given) ?? parseAddress(given), asIs);
  const address = survive(() => parseAddress(text));
  if (address)
    expect([isIP(text), rangeOf(hostPrefix(address)).first === rangeOf(hostPrefix(address)).last]).toEqual([
      isIP(address),
      true,
    ]);
});

const prefixTexts = mutated(
  fc.tuple(fc.oneof(fc.ipV4(), addresses, fc.ipV6()), fc.integer({ min: 0, max: 129 })).map((each) => each.join('/')),
  1,
);

fuzz('a prefix of our own files is what ip-cidr makes of it, where it takes it', 750, [prefixTexts], (text) => {
  const range = survive(() => parseRange(text));
  if (range === null) return;
  // With dots in it ip-cidr takes an IPv6 prefix for one of IPv4.
  if (text.includes(':') && text.includes('.')) return;
  expect(range).toBe(`${parseAddress(new IPCIDR(text).start<string>())}/${text.split('/')[1]}`);
  expect(restorePrefix(range)).toBe(range);
  expect(maskPrefix(text)).toBe(range);
});

fuzz(
  'a range has one spelling, and masking it again changes nothing',
  750,
  [
    mutated(
      fc.oneof(
        ranges,
        fc.tuple(fc.oneof(addresses, hostile), fc.nat(130)).map(([address, length]) => `${address}/${length}`),
      ),
      2,
    ),
  ],
  (text) => {
    expectOneSpelling(text, parsePrefix, asIs);
    expectOneSpelling(text, maskPrefix, asIs);
    const range = survive(() => maskPrefix(text));
    if (range) expect(parsePrefix(range)).toBe(range);
    survive(() => parsePrivateRange(text));
    survive(() => parseRoutes([text], null, true));
  },
);

fuzz(
  'an endpoint, a host and a probe target have one spelling',
  750,
  [
    mutated(
      fc.oneof(
        fc.tuple(fc.oneof(addresses, names), fc.nat(70_000)).map(([host, port]) => formatEndpoint({ host, port })),
        names,
        addresses,
      ),
      2,
    ),
  ],
  (text) => {
    expectOneSpelling(text, parseEndpoint, formatEndpoint);
    expectOneSpelling(text, parseHost, asIs);
    expectOneSpelling(text, parseProbeTarget, formatProbeTarget);
    expectOneSpelling(text, (given) => parsePeerEndpoint(given, true), asIs);
    survive(() => parseListenAddress('listen', text));
  },
);

fuzz('a key is one that wg takes, and a pair is derived of nothing else', 150, [mutated(keys, 2)], (text) => {
  expectOneSpelling(text, parsePublicKey, asIs);
  const isKey = survive(() => parsePublicKey(text)) !== null;
  expect(survive(() => keyPairOf(new Secret(text))) !== null).toBe(isKey);
});

fuzz(
  'the name of an interface is fit for a path, an argument and a rule',
  1000,
  [mutated(fc.constantFrom('cpn0', 'wg-home', 'a.100'), 2)],
  (text) => {
    const name = survive(() => parseLinkName(text));
    if (name !== null) expect(/^[\w.-]{1,15}$/.test(name) && !/^(\.|-)/.test(name)).toBe(true);
  },
);

fuzz(
  'the address of a service has no credentials, and is the same read again',
  750,
  [
    mutated(
      fc.constantFrom('https://cp.example.net', 'http://127.0.0.1:8787/x/', 'http://[::1]', 'https://a:b@c/?d#e'),
    ),
    fc.boolean(),
  ],
  (text, insecure) => {
    const service = survive(() => parseServiceAddress(text, insecure));
    if (service === null) return;
    expect(parseServiceAddress(service.url, insecure)).toEqual(service);
    const { username, password, search, hash, protocol } = new URL(service.url);
    expect([username, password, search, hash]).toEqual(['', '', '', '']);
    expect(['http:', 'https:']).toContain(protocol);
  },
);

const canary = 'canary-in-a-url';
const urls = fc.constantFrom(
  `postgres://cpn:${canary}@db.example.net/net?sslmode=verify-full&sslrootcert=/ca.pem`,
  `postgres://cpn:${canary}@127.0.0.1:5433/net`,
  'postgres:///net?host=/run/postgresql&user=cpn&port=5433',
);

fuzz('the URL of a database is a target or refused, and shows no password', 750, [mutated(urls, 3)], (text) => {
  try {
    const target = bounded(() => parseDatabaseUrl(new Secret(text)));
    expect(target.port >= 1 && target.port <= 65535).toBe(true);
    if (target.password) expect(JSON.stringify(target)).not.toContain(target.password.reveal().padEnd(8, '\0'));
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidValue);
    expect(String(error)).not.toContain(canary.slice(0, 9));
  }
});

fuzz(
  'fields of a request make an object, and none makes a prototype',
  750,
  [
    fc.array(mutated(fc.constantFrom('a=1', 'a[b]=c', 'a[]=v', 'a[][x]=1', '__proto__[x]=1', 'constructor=2'), 2), {
      maxLength: 4,
    }),
  ],
  (given) => {
    const made = survive(() =>
      toObject(given.map((text) => ({ field: parseField(text, '--field'), value: typed(text) }))),
    );
    if (made !== null) expect(JSON.parse(JSON.stringify(made))).toBeTypeOf('object');
    expect(Object.hasOwn(Object.prototype, 'x')).toBe(false);
  },
);

fuzz(
  'a flag is a value of its kind or refused',
  1000,
  [mutated(fc.constantFrom('20s', '500ms', '7', 'yes', 'a,b'))],
  (text) => {
    const input = new Input({ flag: text }, { flag: { type: 'string', describe: '' } } as never, {});
    for (const read of [() => input.number('flag', 1, 9), () => input.duration('flag', 60_000)]) {
      const number = survive(read) ?? 1;
      expect(Number.isFinite(number)).toBe(true);
    }
    survive(() => input.switch('flag'));
    survive(() => input.list('flag'));
  },
);

fuzz(
  'a token is masked wherever it stands, and masking again changes nothing',
  1000,
  [hostile, hostile, fc.constantFrom('cpn_', 'cpp_', 'cps_', 'cpt_', 'cpu_')],
  (before, after, kind) => {
    const shown = bounded(() => maskTokens(`${before} ${kind}canary+/=.~-x ${after}`));
    expect(shown).not.toContain('canary');
    expect(maskTokens(shown)).toBe(shown);
  },
);

const pieces = [
  'a',
  '.',
  '-',
  'a.',
  'a-',
  '_',
  '1',
  ':',
  '::',
  '[',
  ']',
  '/',
  '[a]',
  '=',
  '%',
  '@',
  '?',
  '&',
  '#',
  '://',
  'https://',
  'postgres://',
  'cpn_',
  ',',
];

fuzz('no value is long enough to hang on', 100, [pumped(pieces)], (text) => {
  for (const parse of [
    parseAddress,
    parsePrefix,
    maskPrefix,
    parseEndpoint,
    parseHost,
    parseProbeTarget,
    parseLinkName,
    parsePublicKey,
    readAddress,
  ])
    survive(() => parse(text));
  survive(() => parseServiceAddress(text, true));
  survive(() => parseListenAddress('listen', text));
  survive(() => parseDatabaseUrl(new Secret(text)));
  survive(() => parseField(text, '--field'));
  survive(() => maskTokens(text));
});
