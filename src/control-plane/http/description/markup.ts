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
