type Headers = readonly string[];

/** A description as its tools may write it: with references, a prefix in `servers`, and other names for the parts of paths. */
export function describeForeign({
  enroll = [],
  read = [],
  change = null,
  removal = false,
  replied = null,
  changeNetwork = null,
}: {
  readonly enroll?: Headers;
  readonly read?: Headers;
  readonly change?: readonly string[] | null;
  readonly removal?: boolean;
  readonly replied?: readonly string[] | null;
  readonly changeNetwork?: readonly string[] | null;
} = {}): object {
  const parameters = (names: Headers) => names.map((name) => ({ in: 'header', name, schema: { type: 'string' } }));
  const propertiesOf = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, {}]));
  const properties = propertiesOf(change ?? []);
  const bodyOf = (names: readonly string[]) => ({
    content: { 'application/json': { schema: { type: 'object', properties: propertiesOf(names) } } },
  });
  const enveloped = (names: readonly string[]) => ({
    content: {
      'application/json': {
        schema: { type: 'object', properties: { data: { allOf: [{ properties: propertiesOf(names) }] } } },
      },
    },
  });
  return {
    openapi: '3.1.0',
    info: { title: 'Foreign', version: '1.0.0' },
    servers: [{ url: 'https://elsewhere.example.net/api' }],
    paths: {
      '/networks/enroll': { post: { parameters: parameters(enroll), responses: {} } },
      '/networks/{id}': {
        parameters: read.map((name) => ({ $ref: `#/components/parameters/${name}` })),
        get: { responses: replied === null ? {} : { 200: enveloped(replied) } },
        ...(changeNetwork && { patch: { requestBody: bodyOf(changeNetwork) } }),
      },
      '/networks/{id}/peers/{member}': {
        ...(change && { patch: { requestBody: { $ref: '#/components/requestBodies/Change' } } }),
        ...(removal && { delete: { responses: {} } }),
      },
    },
    components: {
      parameters: Object.fromEntries(parameters(read).map((each) => [each.name, each])),
      requestBodies: {
        Change: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Change' } } } },
      },
      schemas: { Change: { allOf: [{ $ref: '#/components/schemas/Change' }, { type: 'object', properties }] } },
    },
  };
}
