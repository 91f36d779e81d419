import { generateKeyPairSync, sign } from 'node:crypto';
import { isIPv4 } from 'node:net';

/** Makes a certificate for `localhost`, or another name or IPv4 address, signed by itself, and its key: DER by hand, so that no test needs openssl. */
export function makeCertificate(options: { name?: string; days?: [from: number, to: number] } = {}) {
  const { name = 'localhost', days = [-1, 1] } = options;
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const algorithm = sequence(der(0x06, Buffer.from([0x2b, 0x65, 0x70])));
  const subject = sequence(der(0x31, sequence(der(0x06, Buffer.from([0x55, 4, 3])), der(0x0c, Buffer.from(name)))));
  const alternative = sequence(
    der(0x06, Buffer.from([0x55, 0x1d, 0x11])),
    der(
      0x04,
      sequence(isIPv4(name) ? der(0x87, Buffer.from(name.split('.').map(Number))) : der(0x82, Buffer.from(name))),
    ),
  );
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    algorithm,
    subject,
    sequence(...days.map(time)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(alternative)),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign(null, body, privateKey)]);
  const base64 = sequence(body, algorithm, der(0x03, signature)).toString('base64');
  const cert = `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}(?!$)/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

/** A UTCTime so many days from now. */
function time(days: number): Buffer {
  const digits = new Date(Date.now() + days * 86_400_000).toISOString().replace(/[-:T]/g, '').slice(2, 14);
  return der(0x17, Buffer.from(`${digits}Z`));
}
