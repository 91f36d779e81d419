/** A section of a file of another program, and its values in their order. */
export interface Section {
  readonly name: string;
  readonly values: readonly (readonly [key: string, value: string])[];
}

/** Reads `[Section]` and `Key=value`, of which GKeyFile and systemd both understand this much; whatever else stands there is an error. */
export function readIni(text: string): Section[] {
  return read(text, /^\[([^[\]]+)\]$/, /^([A-Za-z0-9-]+)=(.+)$/);
}

/** Reads `config TYPE 'NAME'`, `option KEY 'VALUE'` and `list KEY 'VALUE'` of UCI; whatever else stands there is an error. */
export function readUci(text: string): Section[] {
  return read(text, /^config ([a-z]\w*(?: '\w+')?)$/, /^\t(?:option|list) (\w+) '([^'\\]+)'$/);
}

/** The only value of a key; null where there is none. */
export function only({ name, values }: Section, key: string): string | null {
  const found = all({ name, values }, key);
  if (found.length > 1) throw new Error(`[${name}] has ${key} ${found.length} times`);
  return found[0] ?? null;
}

export function all({ values }: Section, key: string): string[] {
  return values.flatMap(([each, value]) => (each === key ? [value] : []));
}

function read(text: string, heading: RegExp, entry: RegExp): Section[] {
  const sections: { name: string; values: [string, string][] }[] = [];
  for (const line of text.split('\n').filter((each) => each !== '' && !each.startsWith('#'))) {
    const [, name] = heading.exec(line) ?? [];
    const [, key, value] = entry.exec(line) ?? [];
    const section = sections.at(-1);
    if (name !== undefined) sections.push({ name, values: [] });
    else if (key !== undefined && value !== undefined && section) section.values.push([key, value]);
    else throw new Error(`neither a section nor a value: ${line}`);
  }
  return sections;
}
