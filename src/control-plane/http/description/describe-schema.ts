/** HTML in which every text is escaped. */
export interface Markup {
  readonly text: string;
}

/** Creates markup from a template. Values that are markup stay; all others are escaped. */
export function html(parts: TemplateStringsArray, ...values: readonly (Markup | string)[]): Markup {
  return { text: String.raw({ raw: parts }, ...values.map(toText)) };
}

export function join<Item>(items: readonly Item[], toMarkup: (item: Item) => Markup): Markup {
  return { text: items.map((item) => toMarkup(item).text).join('\n') };
}

function toText(value: Markup | string): string {
  return typeof value === 'string' ? value.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`) : value.text;
}

/** The parts of a JSON schema that the page shows. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly description?: string;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

/** Describes a schema: its type, and a row per property of an object. References are links. */
export function describeSchema(schema: Schema): Markup {
  const { $ref, properties, required = [], items } = schema;
  if ($ref !== undefined) return linkTo($ref);
  const [alternatives, sign] = schema.allOf ? [schema.allOf, ' and '] : [schema.anyOf ?? schema.oneOf, ' or '];
  if (alternatives) return { text: alternatives.map((each) => describeSchema(each).text).join(sign) };
  if (items) return html`list of ${describeSchema(items)}${describeRules(schema)}`;
  if (!properties) return html`${describeType(schema)}${describeRules(schema)}`;
  const rows = join(
    Object.entries(properties),
    ([name, property]) =>
      html`<tr><td><code>${name}</code>${required.includes(name) ? '' : ' (optional)'}</td><td>${describeSchema(property)}</td><td>${property.description ?? ''}</td></tr>`,
  );
  return html`<table>${rows}</table>`;
}

function linkTo(reference: string): Markup {
  const name = reference.slice(reference.lastIndexOf('/') + 1);
  return html`<a href="#schema-${name}">${name}</a>`;
}

function describeType({ type, const: only, enum: values, format }: Schema): string {
  if (only !== undefined) return JSON.stringify(only);
  if (values) return values.map((value) => JSON.stringify(value)).join(' | ');
  const name = [type ?? 'any'].flat().join(' or ');
  return format === undefined ? name : `${name} (${format})`;
}

const rules: Readonly<Record<string, string>> = {
  minLength: 'at least %s characters',
  maxLength: 'at most %s characters',
  minItems: 'at least %s items',
  maxItems: 'at most %s items',
  minimum: 'at least %s',
  maximum: 'at most %s',
  pattern: 'pattern %s',
  default: 'default %s',
};

function describeRules(schema: Schema): string {
  const known: readonly (readonly [string, unknown])[] = Object.entries(schema);
  const found = known.flatMap(([name, value]) => {
    const rule = rules[name];
    return rule === undefined || value === Number.MAX_SAFE_INTEGER ? [] : [rule.replace('%s', () => String(value))];
  });
  return found.length === 0 ? '' : `, ${found.join(', ')}`;
}
