import type { JSX } from 'preact';
import type { NetworkLimit } from '../../../contract/auth.ts';
import type { NetworkSummary } from '../../../contract/network.ts';
import { usePolled } from '../../polled.ts';
import { Problem } from '../request-state.tsx';
import { Check } from './form.tsx';

interface NetworkChoiceProps {
  readonly value: NetworkLimit;
  readonly onChange: (value: NetworkLimit) => void;
}

/** Chooses the networks to which a user or a token is limited. */
export function NetworkChoice({ value, onChange }: NetworkChoiceProps): JSX.Element {
  const networks = usePolled<NetworkSummary>('api/networks');
  return (
    <fieldset class="field limit">
      <legend>Networks</legend>
      <Check
        label="Limit to some networks"
        isChecked={value !== null}
        onChange={(isLimited) => onChange(isLimited ? [] : null)}
      />
      {value !== null &&
        networks.items?.map(({ id, name }) => (
          <Check
            key={id}
            label={name}
            isChecked={value.includes(id)}
            onChange={(isChosen) => onChange(isChosen ? [...value, id] : value.filter((each) => each !== id))}
          />
        ))}
      {value !== null && <Problem text={networks.problem} />}
    </fieldset>
  );
}

/** Returns a function that names the networks of a limit. A service without limits sends none. */
export function useLimitText(): (limit: NetworkLimit | undefined) => string {
  const networks = usePolled<NetworkSummary>('api/networks');
  const names = new Map(networks.items?.map(({ id, name }) => [id, name]));
  return (limit = null) =>
    limit === null ? 'all' : limit.map((id) => names.get(id) ?? `network ${id}`).join(', ') || 'none';
}
