import { BadReply, Refused } from '../core/errors/index.ts';
import { type AdminFeature, findFeatures, isDescribedForAdmins } from '../core/map/features.ts';
import { baseOf, type ServiceAddress } from '../core/net/service-address.ts';
import { HttpClient } from './http/client.ts';
import type { ClientOptions } from './http/client-options.ts';
import type { ServiceDescription } from './service.ts';

const path = '/docs/api/openapi.json';
/** A host waits only briefly for it, and stores no more of it. */
const bounds = { deadlineMs: 5_000, attempts: 2, maxBodyBytes: 4 * 1024 * 1024 };

/**
 * Reads the features of a service, without credentials; null if unchanged since the ETag `known`.
 *
 * @throws Unreachable, Refused or BadReply if it cannot be read
 */
export async function readDescription(
  address: ServiceAddress,
  known: string | null,
  options: ClientOptions = {},
): Promise<ServiceDescription | null> {
  const { status, body, etag, reading } = await fetchDescription(address, known, options);
  if (status === 304) return null;
  const features = findFeatures(body, basePathOf(address));
  if (features === null)
    throw new BadReply(reading.url, 'is not an OpenAPI description', 'only the public contract is used');
  // A tag with other characters cannot be sent back unchanged. A weak tag is sufficient.
  const isUsable = etag !== null && /^(W\/)?"[\x21\x23-\x7e]{0,128}"$/.test(etag);
  return { features, etag: isUsable ? etag : null };
}

/**
 * Returns which extensions for administrators the service at `address` describes. The first call
 * reads the description; later calls reuse it. Without a description there are none.
 *
 * @throws Unreachable
 */
export function readAdminFeatures(
  address: ServiceAddress,
  options: ClientOptions = {},
): (feature: AdminFeature) => Promise<boolean> {
  let reading: Promise<unknown> | undefined;
  const read = async () => {
    try {
      return (await fetchDescription(address, null, options)).body;
    } catch (error) {
      if (error instanceof Refused || error instanceof BadReply) return null;
      throw error;
    }
  };
  return async (feature) => {
    reading ??= read();
    return isDescribedForAdmins(feature, await reading, basePathOf(address));
  };
}

function fetchDescription(address: ServiceAddress, known: string | null, options: ClientOptions) {
  return new HttpClient(address, { ...bounds, ...options }).call({
    what: 'reading the description of the service',
    method: 'GET',
    path,
    headers: known === null ? {} : { 'if-none-match': known },
    repeatable: true,
    answered: true,
    remedies: { 404: 'only the public contract is used' },
  });
}

function basePathOf(address: ServiceAddress): string {
  return baseOf(address).pathname.replace(/\/$/, '');
}
