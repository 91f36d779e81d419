import type { MaliciousReply } from './malicious-reply.ts';
import { contradictions } from './replies/contradictions.ts';
import { deniedAddresses, deniedEndpoints, deniedRoutes } from './replies/denied-places.ts';
import { crowded, documents } from './replies/documents.ts';
import { headers } from './replies/headers.ts';
import { injection, names } from './replies/injection.ts';
import { readyTexts } from './replies/ready-texts.ts';
import { spellings } from './replies/spellings.ts';
import { failuresOf, redirects, refusalsOf, successes } from './replies/statuses.ts';
import { contentTypesOf, encodings, framing, slow } from './replies/transport.ts';
import { missing, types } from './replies/types.ts';

/** Every malicious reply, family by family. */
export const maliciousReplies: readonly MaliciousReply[] = [
  ...slow,
  ...injection,
  ...names,
  ...headers,
  ...spellings,
  ...deniedRoutes,
  ...deniedEndpoints,
  ...deniedAddresses,
  ...types,
  ...missing,
  ...documents,
  ...crowded,
  ...encodings,
  ...contentTypesOf,
  ...framing,
  ...redirects,
  ...refusalsOf,
  ...failuresOf,
  ...successes,
  ...contradictions,
  ...readyTexts,
];
