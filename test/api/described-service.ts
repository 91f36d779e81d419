import type { ClientOptions } from '../../src/api/client-options.ts';
import { connectPeerService as connect } from '../../src/api/peer-service.ts';
import { features } from '../../src/core/features.ts';
import type { ServiceAddress } from '../../src/core/model.ts';

/** A client of a service that describes every extension. */
export const connectPeerService = (address: ServiceAddress, options: ClientOptions = {}) =>
  connect(address, features, options);
