type Json = { [name: string]: unknown };

/**
 * Corrects the generated document: schemas twice (input, output), lower-case header names, replies
 * without description, and closed objects, which the contract leaves open.
 */
export function cleanUpDescription(document: Json): Json {
  const opened = JSON.parse(JSON.stringify(document, (name, value) => (isClosure(name, value) ? undefined : value)));
  for (const path of Object.values<Json>(opened.paths)) {
    for (const operation of Object.values(path)) cleanUpOperation(operation as GeneratedOperation);
  }
  return mergeSchemas(opened);
}

interface GeneratedOperation {
  parameters?: { in: string; name: string }[];
  responses: Record<string, Json>;
}

function isClosure(name: string, value: unknown): boolean {
  return name === 'additionalProperties' && value === false;
}

function cleanUpOperation({ parameters = [], responses }: GeneratedOperation): void {
  for (const parameter of parameters) {
    if (parameter.in === 'header') parameter.name = headerName(parameter.name);
  }
  const takes = (header: string) => parameters.some(({ name }) => name === header);
  for (const [status, response] of Object.entries(responses)) {
    if (response.description === 'Default Response') response.description = meanings[status];
    if (status === '429' || status === '503') response.headers = { 'Retry-After': retryAfter };
    if (takes('If-None-Match') && /^[23]/.test(status)) {
      response.headers = { ETag: etag, ...(takes('Prefer') && { 'Preference-Applied': applied }) };
    }
    if (status === '226') response.headers = { ...(response.headers as Json), IM: manipulation, 'Delta-Base': base };
  }
}

function headerName(name: string): string {
  return name === 'a-im' ? 'A-IM' : name.replace(/(^|-)[a-z]/g, (text) => text.toUpperCase());
}

const meanings: Readonly<Record<string, string>> = {
  200: 'Done.',
  201: 'Made.',
  226: 'The changes since the named revision.',
  400: 'It was refused; the body has the reason.',
  401: 'There is no credential, or it is unknown.',
  403: 'The role may not do this; or the enrolment key has expired, is used up or was revoked.',
  404: 'It does not exist, or belongs to another organization.',
  409: 'The enrolment key is for one of the Current-Networks. Nothing was done and no use of the key taken.',
  410: 'The network of the peer was deleted.',
  412: 'The network of the enrolment key lists a peer of Current-Peers. Nothing was done and no use of the key taken.',
  413: 'The body is larger than 64 KiB.',
  415: 'The body has a Content-Encoding.',
  422: 'Fields break rules; errors names each with its rules. Nothing was done and no use of a key taken.',
  429: 'Too many requests, or too many failures; try again later. No use of a key was taken.',
  500: 'The control plane failed; its log says why.',
  503: 'Not now: the control plane is shutting down, or its database cannot be reached or written. Nothing was done.',
  504: 'The database was lost before it confirmed the change. Check whether it was made before you repeat the request.',
};

const retryAfter = { description: 'Seconds to wait before the next attempt.', schema: { type: 'integer', minimum: 1 } };
const etag = { description: 'A strong ETag; of a network, its revision.', schema: { type: 'string' } };

const applied = {
  description: 'wait=N, when the reply would have waited that many seconds for another revision.',
  schema: { type: 'string' },
};

const manipulation = { description: 'The form of the body: cpn-delta.', schema: { const: 'cpn-delta' } };
const base = { description: 'The named revision, to which the changes in the body apply.', schema: { type: 'string' } };

/** Keeps the schemas that operations use, each only once: `NameInput` becomes `Name`. */
function mergeSchemas(document: Json): Json {
  const components = document.components as { schemas: Json };
  const used = new Set<string>();
  const follow = (part: unknown) => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(reference)) {
      if (used.has(name)) continue;
      used.add(name);
      follow(components.schemas[name]);
    }
  };
  follow(document.paths);
  const kept = [...used].filter((name) => !used.has(`${name}Input`)).sort();
  const schemas = Object.fromEntries(kept.map((name) => [plainName(name), components.schemas[name]]));
  const merged = JSON.stringify({ ...document, components: { ...components, schemas } });
  return JSON.parse(merged.replace(reference, (_all, name) => `"#/components/schemas/${plainName(name)}"`));
}

const reference = /"#\/components\/schemas\/(\w+)"/g;

function plainName(name: string): string {
  return name.replace(/Input$/, '');
}
