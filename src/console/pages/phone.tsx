import type { JSX } from 'preact';
import nacl from 'tweetnacl';
import type { NewEnrollmentKey } from '../../contract/enrollment-key.ts';
import type { Enrollment, Network } from '../../contract/network.ts';
import { call } from '../client.ts';
import { linkTo } from '../logic/page/route.ts';
import { renderPhoneConfig } from '../logic/peers/phone-config.ts';
import { Copy } from '../parts/copy.tsx';
import { QrCode } from '../parts/qr-code.tsx';

/** A phone that is a peer now, and the wg-quick text with its private key, which is here and nowhere else. */
export interface Phone {
  readonly name: string;
  readonly address: string;
  readonly config: string;
}

/** Makes a key pair in this page, and enrols its public key. @throws ApiError */
export async function enrollPhone(network: Network, name: string, expiresInHours: number | null): Promise<Phone> {
  const { publicKey, secretKey } = nacl.box.keyPair();
  const keys = `api/networks/${network.id}/enrollment-keys`;
  const key = await call<NewEnrollmentKey>('POST', keys, {
    name,
    max_uses: 1,
    expires_in_hours: 1,
    peer_types: ['admin_device'],
    ...(expiresInHours !== null && { peer_expires_in_hours: expiresInHours }),
  });
  try {
    const { peer, network: joined } = await call<Enrollment>('POST', 'api/networks/enroll', {
      enrollment_token: key.enrollment_token,
      name,
      peer_type: 'admin_device',
      public_key: toBase64(publicKey),
    });
    return { name: peer.name, address: peer.address, config: renderPhoneConfig(joined, peer, toBase64(secretKey)) };
  } catch (error) {
    // Best effort: it expires within the hour.
    await call('DELETE', `${keys}/${key.id}`).catch(() => undefined);
    throw error;
  }
}

const toBase64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes));

export function PhoneResult({ network, phone }: { readonly network: Network; readonly phone: Phone }): JSX.Element {
  const hasSecret = network.peers.some(({ network_secret_tag }) => network_secret_tag !== undefined);
  const hasDialled = network.peers.some(({ endpoint }) => endpoint !== null);
  return (
    <section aria-label="The phone">
      <h2>
        {phone.name} is a peer with {phone.address}
      </h2>
      <p>
        Scan the code with the WireGuard app: Add a tunnel, then Scan from QR code. The page made the private key; it
        was never sent. When you leave this page, the key is gone. The phone does not receive later changes of the
        network.
      </p>
      {hasSecret && (
        <p class="problem">
          Hosts of this network use a network secret and do not answer this phone. Remove the peer, and type{' '}
          <code>
            cpn export {network.id} --new-peer {phone.name} --qr --network-secret-file FILE
          </code>
        </p>
      )}
      {!hasDialled && (
        <p class="problem">
          No peer has an endpoint, so the phone reaches none. Give one an endpoint in{' '}
          <a href={linkTo({ page: 'peers', network: network.id })}>Peers</a>, then add the phone again.
        </p>
      )}
      <QrCode label={`The tunnel of ${phone.name} as a QR code`} text={phone.config} />
      <Copy what="file" label="The same as a wg-quick file" text={phone.config} />
    </section>
  );
}
