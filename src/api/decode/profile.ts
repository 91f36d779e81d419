import { parsePeerKey } from '../../core/crypto/keys.ts';
import type { ConnectorProfile } from '../../core/export/device-profile.ts';
import { peerFields } from '../../core/map/peer-fields.ts';
import { parseRange } from '../../core/net/cidr.ts';
import { formatEndpoint, parseEndpoint } from '../../core/net/endpoint.ts';
import { aliases } from '../aliases.ts';
import { decodeId, type Field } from './field.ts';

const names = aliases.peer;
const mostRoutes = 256;

/** The profile of a peer that dials one connector; null if absent or malformed. */
export function findProfile(peer: Field): ConnectorProfile | null {
  if (peer.find([peerFields.via.name])?.value !== 'connectors') return null;
  return peer.tryFind(names.profile, decodeProfile);
}

function decodeProfile(profile: Field): ConnectorProfile {
  const decodeRoutes = (routes: Field) =>
    routes.items(mostRoutes).map((route) => route.parse((text) => parseRange(text)));
  return {
    connector: decodeId(profile.need(names.connector)),
    public_key: profile.need(names.publicKey).parse((text) => parsePeerKey(text)),
    endpoint: formatEndpoint(profile.need(names.endpoint).parse((text) => parseEndpoint(text))),
    routes: decodeRoutes(profile.need(names.routes)),
    declined: decodeRoutes(profile.need(names.declined)),
  };
}
