import type { Explanation } from '../../app/inspect/explain.ts';
import { printable } from '../../core/errors/index.ts';
import type { Check } from '../../core/explain/check.ts';
import { bold, type Cell, dim, green, red, table, yellow } from './output.ts';

/** The JSON of an explanation, a contract for scripts. */
export function explanationToJson({ address, name, dns, network, interface: link, checks, stop }: Explanation) {
  return {
    address,
    name,
    dns: dns && { domain: dns.domain, interface: dns.link, servers: dns.servers },
    network,
    interface: link,
    checks: checks.map(({ check, ok, detail, remedy }) => ({
      check,
      ok,
      detail: remedy === null ? detail : `${detail}; ${remedy}`,
    })),
    stops_at: stop?.check ?? null,
  };
}

/** One line per check, and at the end the check at which the packet stops, with the remedy. */
export function explanationToText(explanation: Explanation): string {
  const { address, name, origin, network, interface: link, checks } = explanation;
  const where = network && `  network ${printable(network.name)} (${network.id}) on ${link}`;
  const head = `${bold(printable(address ?? name ?? ''))}${where ?? ''}${origin === null ? '' : `  ${dim(printable(origin))}`}`;
  const rows = checks.map((check): Cell[] => [markOf(check), check.check, printable(check.detail)]);
  return [head, table(['', 'check', ''], rows), conclude(explanation)].join('\n');
}

function conclude({ address, network, checks, stop }: Explanation): string {
  if (stop !== null) {
    const word = stop.check === 'name' ? 'stopped' : 'dropped';
    return `${red(word)} at ${stop.check}: ${printable(stop.remedy ?? stop.detail)}`;
  }
  const unknown = checks.find(({ ok, remedy }) => ok === null && remedy !== null);
  if (unknown) return `${yellow('unknown')} at ${unknown.check}: ${printable(unknown.remedy ?? '')}`;
  const outside = network === null ? ', which is outside every network of this host' : '';
  const open = checks.filter(({ ok, check }) => ok === null && !(outside && check === 'network'));
  const rest = open.length === 0 ? '' : `; unknown: ${open.map(({ check }) => check).join(', ')}`;
  return `${green('nothing')} blocks a packet to ${address}${outside}${rest}`;
}

/** A coloured sign. Without colour, a word. */
function markOf({ ok }: Check): Cell {
  if (ok === null) return ['?', yellow];
  const [paint, sign, word] = ok ? ([green, '✓', 'ok'] as const) : ([red, '✗', 'no'] as const);
  return paint(sign) === sign ? word : [sign, paint];
}
