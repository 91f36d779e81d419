import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';

/** An authenticator without hardware: WebAuthn Level 3, with ES256 and without attestation. */
export interface Authenticator {
  readonly id: string;
  /** Answers the options for `navigator.credentials.create()`. */
  create(options: PasskeyOptions, page: Page): object;
  /** Answers the options for `navigator.credentials.get()`. */
  get(options: PasskeyOptions, page: Page): object;
  /** The next signature has this counter. */
  counter: number;
}

// biome-ignore lint/suspicious/noExplicitAny: options of WebAuthn in JSON.
type PasskeyOptions = any;

interface Page {
  readonly origin: string;
  readonly rpId: string;
}

export function makeAuthenticator(counter = 0): Authenticator {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  const credential = randomBytes(32);
  const id = credential.toString('base64url');
  const coordinates = [x, y].map((each) => Buffer.from(each, 'base64url'));
  const key = encode(
    new Map<number, Item>([
      ...([[1, 2] as const, [3, -7] as const, [-1, 1] as const] satisfies [number, number][]),
      ...coordinates.map((each, at) => [-2 - at, each] as [number, Item]),
    ]),
  );
  const clientData = (type: string, challenge: string, origin: string) =>
    Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
  const authData = (rpId: string, flags: number, count: number, more: Buffer = Buffer.alloc(0)) => {
    const head = Buffer.alloc(5);
    head.writeUInt8(flags);
    head.writeUInt32BE(count, 1);
    return Buffer.concat([sha256(rpId), head, more]);
  };
  const present = 0x01;
  const hasCredential = 0x40;
  return {
    id,
    counter,
    create({ challenge }, { origin, rpId }) {
      const length = Buffer.from([0, credential.length]);
      const made = Buffer.concat([Buffer.alloc(16), length, credential, key]);
      const object = new Map<string, Item>([
        ['fmt', 'none'],
        ['attStmt', new Map()],
        ['authData', authData(rpId, present | hasCredential, this.counter, made)],
      ]);
      const response = {
        clientDataJSON: clientData('webauthn.create', challenge, origin).toString('base64url'),
        attestationObject: encode(object).toString('base64url'),
      };
      return {
        id,
        rawId: id,
        type: 'public-key',
        response,
        clientExtensionResults: {},
        authenticatorAttachment: 'platform',
      };
    },
    get({ challenge }, { origin, rpId }) {
      const data = authData(rpId, present, this.counter);
      const client = clientData('webauthn.get', challenge, origin);
      const signature = sign('sha256', Buffer.concat([data, sha256(client)]), privateKey);
      const response = {
        clientDataJSON: client.toString('base64url'),
        authenticatorData: data.toString('base64url'),
        signature: signature.toString('base64url'),
      };
      return { id, rawId: id, type: 'public-key', response, clientExtensionResults: {} };
    },
  };
}

type Item = number | string | Buffer | Map<number | string, Item>;

/** CBOR (RFC 8949) of short items. */
function encode(item: Item): Buffer {
  if (typeof item === 'number') return item >= 0 ? head(0, item) : head(1, -1 - item);
  if (typeof item === 'string') return Buffer.concat([head(3, item.length), Buffer.from(item)]);
  if (Buffer.isBuffer(item)) return Buffer.concat([head(2, item.length), item]);
  return Buffer.concat([head(5, item.size), ...[...item].flat().map(encode)]);
}

function head(major: number, value: number): Buffer {
  if (value < 24) return Buffer.from([(major << 5) | value]);
  return value < 256
    ? Buffer.from([(major << 5) | 24, value])
    : Buffer.from([(major << 5) | 25, value >> 8, value & 255]);
}

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest();
