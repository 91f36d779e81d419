import type { Lie } from './lie.ts';
import { contradictions } from './lies/contradictions.ts';
import { deniedAddresses, deniedEndpoints, deniedRoutes } from './lies/denied-places.ts';
import { crowded, documents } from './lies/documents.ts';
import { headers } from './lies/headers.ts';
import { injection, names } from './lies/injection.ts';
import { readyTexts } from './lies/ready-texts.ts';
import { spellings } from './lies/spellings.ts';
import { failuresOf, redirects, refusalsOf, successes } from './lies/statuses.ts';
import { contentTypesOf, encodings, framing, slow } from './lies/transport.ts';
import { missing, types } from './lies/types.ts';

/** Every lie that is told, family by family. */
export const lies: readonly Lie[] = [
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
