import { InvalidValue, WrongUsage } from '../../core/errors/index.ts';
import { type Flags, readSwitch } from './flags.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** A command's argument and flags. Each value is from the command line, else from a variable. */
export class Input {
  readonly #given: Readonly<Record<string, unknown>>;
  readonly #flags: Flags;
  readonly #process: Environment;
  readonly environment: Environment;

  /** @param below fallbacks for variables that the environment does not set */
  constructor(
    given: Readonly<Record<string, unknown>>,
    flags: Flags,
    environment: Environment,
    below: Environment = {},
  ) {
    this.#given = given;
    this.#flags = flags;
    this.#process = environment;
    this.environment = { ...below, ...environment };
  }

  /** The same input, with these variables as fallbacks for the command line and the environment. */
  above(variables: Environment): Input {
    return new Input(this.#given, this.#flags, this.#process, variables);
  }

  argument(name: string): string | undefined {
    const value = this.#given[name];
    return value === undefined ? undefined : String(value);
  }

  text(flag: string): string | undefined {
    const value = this.#read(flag);
    if (Array.isArray(value))
      throw new WrongUsage(`${this.nameOf(flag)} was given ${value.length} times; give it once`);
    if (value === '') throw new WrongUsage(`${this.nameOf(flag)} is empty; give it a value, or leave it out`);
    return value === undefined ? undefined : String(value);
  }

  /** True for a flag on the command line, which every user of the machine can read. */
  isTyped(flag: string): boolean {
    return this.#given[flag] !== undefined;
  }

  need(flag: string, remedy = ''): string {
    const value = this.text(flag);
    if (value === undefined) throw new WrongUsage(`--${flag} is missing${remedy ? `; ${remedy}` : ''}`);
    return value;
  }

  /** True for a flag from the command line or a variable. */
  has(flag: string): boolean {
    return this.#read(flag) !== undefined;
  }

  number(flag: string, min: number, max: number): number | undefined {
    const text = this.text(flag);
    if (text === undefined) return undefined;
    const number = /^(0|[1-9][0-9]{0,9})$/.test(text) ? Number(text) : Number.NaN;
    if (number >= min && number <= max) return number;
    throw new InvalidValue(this.nameOf(flag), text, `is not a number from ${min} to ${max}`);
  }

  /** Milliseconds, from `20s`, `2m` or `500ms`. */
  duration(flag: string, maxMs: number): number | undefined {
    const text = this.text(flag);
    if (text === undefined) return undefined;
    const [, amount, unit = ''] = /^(0|[1-9][0-9]{0,5})(ms|s|m)$/.exec(text) ?? [];
    const duration = Number(amount ?? Number.NaN) * ({ ms: 1, s: 1000, m: 60_000 }[unit] ?? Number.NaN);
    if (duration <= maxMs) return duration;
    throw new InvalidValue(this.nameOf(flag), text, `is not a time up to ${maxMs / 1000} s, such as 20s or 2m`);
  }

  /** Seconds, from `90m`, `12h` or `30d`. */
  period(flag: string, min: number, max: number): number | undefined {
    const text = this.text(flag);
    if (text === undefined) return undefined;
    const [, amount, unit = ''] = /^([1-9][0-9]{0,5})(m|h|d)$/.exec(text) ?? [];
    const period = Number(amount ?? Number.NaN) * ({ m: 60, h: 3600, d: 86_400 }[unit] ?? Number.NaN);
    if (period >= min && period <= max) return period;
    throw new InvalidValue(
      this.nameOf(flag),
      text,
      `is not a time from ${min < 3600 ? `${min / 60}m` : `${min / 3600}h`} to ${max / 86_400}d, such as 12h or 30d`,
    );
  }

  /** The values of a repeatable flag. A variable separates them by commas. */
  list(flag: string): string[] {
    const value = this.#read(flag);
    if (Array.isArray(value)) return value.map(String);
    return value === undefined
      ? []
      : String(value)
          .split(',')
          .map((item) => item.trim());
  }

  /** The values of a repeatable flag, including their commas. A variable contains only one. */
  each(flag: string): string[] {
    const value = this.#read(flag);
    return value === undefined ? [] : [value].flat().map(String);
  }

  switch(flag: string, byDefault = false): boolean {
    return this.choice(flag) ?? byDefault;
  }

  /** A switch that is undefined if it was omitted. */
  choice(flag: string): boolean | undefined {
    const value = this.#read(flag);
    if (value === undefined || typeof value === 'boolean') return value;
    return readSwitch(this.nameOf(flag), String(value));
  }

  /** The name of a flag for messages. If its value is from the environment, the variable. */
  nameOf(flag: string): string {
    const variable = variableOf(flag);
    return !this.isTyped(flag) && this.#process[variable] !== undefined ? variable : `--${flag}`;
  }

  #read(flag: string): unknown {
    if (this.#flags[flag] === undefined) throw new Error(`the command has no flag --${flag}`);
    return this.#given[flag] ?? this.environment[variableOf(flag)];
  }
}

export function parseChoice<Choice extends string>(name: string, text: string, choices: readonly Choice[]): Choice {
  const choice = choices.find((each) => each === text);
  if (choice !== undefined) return choice;
  throw new InvalidValue(name, text, `must be one of ${choices.join(', ')}`);
}

/** The variable of a flag: `--listen-port` is `CPN_LISTEN_PORT`. */
export function variableOf(flag: string): string {
  return `CPN_${flag.replaceAll('-', '_').toUpperCase()}`;
}
