import { createHash } from 'node:crypto';
import { describeSchema, html, join, type Markup, type Schema } from './describe-schema.ts';

/** The parts of an OpenAPI 3.1 document that the page shows. */
export interface Description {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: { readonly schemas?: Readonly<Record<string, Schema>> };
}

interface DescribedOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: MediaTypes };
  readonly security?: readonly Readonly<Record<string, unknown>>[];
  readonly responses: Readonly<Record<string, DescribedResponse>>;
  readonly 'x-roles'?: readonly string[];
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

interface DescribedResponse {
  readonly description: string;
  readonly content?: MediaTypes;
}

type MediaTypes = Readonly<Record<string, { readonly schema: Schema }>>;

/** No scripts: a library's viewer would run at the console's origin, with its users' sessions. */
export function renderDescription({ info, paths, components }: Description): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const schemas = Object.entries(components.schemas ?? {});
  const page = html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${info.title}</title><style>${style}</style></head>
<body>
<h1>${info.title}</h1>
<p>${info.description ?? ''}</p>
<p>For programs: <a href="docs/api/openapi.json">docs/api/openapi.json</a> (OpenAPI 3.1).</p>
<h2>Operations</h2>
<ul>${join(operations, ({ path, method, operation: { operationId, summary } }) => html`<li><a href="#${operationId}"><code>${method} ${path}</code></a> ${summary}</li>`)}</ul>
${join(operations, ({ path, method, operation }) => describeOperation(`${method} ${path}`, operation))}
<h2>Schemas</h2>
${join(schemas, ([name, schema]) => html`<section id="schema-${name}"><h3>${name}</h3>${describeSchema(schema)}</section>`)}
</body>
</html>
`;
  return page.text;
}

function describeOperation(call: string, operation: DescribedOperation): Markup {
  const { operationId, summary, description = '', parameters = [], requestBody, responses } = operation;
  return html`<section id="${operationId}">
<h3><code>${call}</code></h3>
<p><strong>${summary}</strong></p>
<p>${description}</p>
<p>Access: ${describeAccess(operation)}</p>
${parameters.length > 0 ? describeParameters(parameters) : ''}
${requestBody ? html`<h4>Body</h4>${describeContent(requestBody.content)}` : ''}
<h4>Replies</h4>
<dl>${join(Object.entries(responses), ([status, response]) => html`<dt>${status}</dt><dd>${response.description}${response.content ? describeContent(response.content) : ''}</dd>`)}</dl>
</section>
`;
}

const credentials: Readonly<Record<string, string>> = {
  session: 'a session',
  personal: 'a personal token',
  peer: 'the token of a peer',
};

function describeAccess({ security = [], 'x-roles': roles = [] }: DescribedOperation): string {
  if (security.length === 0) return 'anyone.';
  const accepted = security.flatMap((each) => Object.keys(each)).map((name) => credentials[name] ?? name);
  return `${accepted.join(', ')}.${roles.length > 0 ? ` Roles: ${roles.join(', ')}.` : ''}`;
}

function describeParameters(parameters: readonly Parameter[]): Markup {
  const rows = join(
    parameters,
    ({ name, in: place, required, description = '', schema }) =>
      html`<tr><td><code>${name}</code></td><td>${place}${required ? ', required' : ''}</td><td>${describeSchema(schema)}</td><td>${description}</td></tr>`,
  );
  return html`<table><tr><th>parameter</th><th>in</th><th>type</th><th></th></tr>${rows}</table>`;
}

function describeContent(content: MediaTypes): Markup {
  return join(
    Object.entries(content),
    ([type, { schema }]) => html`<div><code>${type}</code> ${describeSchema(schema)}</div>`,
  );
}

const style = [
  ':root{color-scheme:light dark}',
  'body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;overflow-wrap:break-word}',
  'section{border-top:1px solid #8886;margin-top:1.5rem}',
  'section:target h3{text-decoration:underline}',
  'table{border-collapse:collapse;width:100%;display:block;overflow-x:auto}',
  'td,th{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0;border-top:1px solid #8884}',
  'td{min-width:6rem}',
  'dt{font-weight:600}',
  'dd{margin:0 0 .5rem 1.5rem}',
].join('');

/** The style is permitted by its hash. Nothing else is loaded or run. */
export const descriptionPagePolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
