import type { ClientOptions } from '../../src/api/http/client-options.ts';
import { connectPeerService as connect } from '../../src/api/peer-service.ts';
import { features } from '../../src/core/map/features.ts';
import type { ServiceAddress } from '../../src/core/net/service-address.ts';

/** A client of a service that describes every extension. */
export const connectPeerService = (address: ServiceAddress, options: ClientOptions = {}) =>
  connect(address, features, options);
