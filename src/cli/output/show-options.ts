import { defaultOptions, formatProbeTarget, type Options, optionRules } from '../../core/map/options.ts';
import { formatPrefixMap } from '../../core/map/prefix-maps.ts';
import { listedOptions } from '../parse/host-options.ts';

/** The options of a host by their flags, a contract for scripts. Periods are in seconds. */
export function optionsToJson(options: Options) {
  return Object.fromEntries(listValues(options).map(({ flag, value }) => [flag.replaceAll('-', '_'), value]));
}

/** The flags that set these options. Leaves out defaults, and the port, which the status has. */
export function describeOptions(options: Options): string[] {
  const defaults = new Map(listValues(defaultOptions).map(({ flag, value }) => [flag, value]));
  return listValues(options)
    .filter(({ option, flag, value }) => option !== 'listenPort' && value !== defaults.get(flag))
    .flatMap(({ option, flag, value }) => {
      if (typeof value === 'boolean') return [value ? `--${flag}` : `--no-${flag}`];
      if (typeof value === 'object') return (value ?? []).map((each) => `--${flag} ${each}`);
      const isPeriod = typeof value === 'number' && optionRules[option].kind === 'period';
      return [`--${flag} ${isPeriod ? describePeriod(value) : value}`];
    });
}

function listValues(options: Options) {
  const { probes, maps, ...others } = options;
  const values = { ...others, probes: probes.map(formatProbeTarget), maps: maps.map(formatPrefixMap) };
  return listedOptions.flatMap(([flag, { option }]) =>
    option === 'networkSecret' ? [] : [{ option, flag, value: values[option] }],
  );
}

function describePeriod(seconds: number): string {
  if (seconds % 86_400 === 0) return `${seconds / 86_400}d`;
  return seconds % 3600 === 0 ? `${seconds / 3600}h` : `${seconds / 60}m`;
}
