import { BadReply } from '../core/errors.ts';
import { findFeatures } from '../core/features.ts';
import type { ServiceAddress } from '../core/model.ts';
import { parseServiceAddress } from '../core/service-address.ts';
import type { ClientOptions } from './client-options.ts';
import { HttpClient } from './http.ts';
import type { ServiceDescription } from './service.ts';

const path = '/docs/api/openapi.json';
/** A host does not wait for long for it, and holds no more of it than this. */
const bounds = { deadlineMs: 5_000, attempts: 2, maxBodyBytes: 4 * 1024 * 1024 };

/**
 * Reads which features the service at `address` describes; null where the description is still the one with the ETag `known`. No
 * credential is sent.
 *
 * @throws Unreachable, Refused or BadReply where it cannot be read
 */
export async function readDescription(
  address: ServiceAddress,
  known: string | null,
  options: ClientOptions = {},
): Promise<ServiceDescription | null> {
  const http = new HttpClient(address, { ...bounds, ...options });
  const { status, body, etag, reading } = await http.call({
    what: 'reading the description of the service',
    method: 'GET',
    path,
    headers: known === null ? {} : { 'if-none-match': known },
    repeatable: true,
    answered: true,
    remedies: { 404: 'only the public contract is used' },
  });
  if (status === 304) return null;
  const basePath = new URL(parseServiceAddress(address.url, address.insecureHttp).url).pathname.replace(/\/$/, '');
  const features = findFeatures(body, basePath);
  if (features === null)
    throw new BadReply(reading.url, 'is no OpenAPI description', 'only the public contract is used');
  return { features, etag: usable(etag) };
}

/** An entity tag that can be sent back as it came; a weak one does for a description. */
function usable(etag: string | null): string | null {
  return etag !== null && /^(W\/)?"[\x21\x23-\x7e]{0,128}"$/.test(etag) ? etag : null;
}
