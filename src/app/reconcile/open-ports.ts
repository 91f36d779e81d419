import { expectCpnError, WrongUsage } from '../../core/errors/index.ts';
import type { Actual } from '../../core/host-state/actual.ts';
import type { OpenPort, PortState } from '../../core/host-state/receipt.ts';
import type { Options } from '../../core/map/options.ts';
import type { Change } from '../../core/reconcile/change.ts';
import { type PortPlan, planClosing, planPorts, without } from '../../core/reconcile/open-ports.ts';
import type { Step } from '../../core/reconcile/step.ts';
import { sameData } from '../../core/util/same-data.ts';
import type { Joined, State } from '../../store/state/state.ts';
import type { Tools } from '../tools.ts';

/** Refuses `--open-firewall` if the kernel chooses the port, which changes. @throws WrongUsage */
export function refuseUnfixedPort({ openFirewall, listenPort }: Options): void {
  if (!openFirewall || listenPort !== null) return;
  throw new WrongUsage(
    '--open-firewall needs the port that peers dial; add --endpoint HOST:PORT or --listen-port PORT, or --no-open-firewall',
  );
}

/** Plans ports to open. Queries firewall programs only if a port must be open, or was opened. */
export async function preparePorts(
  tools: Pick<Tools, 'host' | 'warn'>,
  state: State,
  { underlay }: Actual,
): Promise<PortPlan> {
  const { interface: link, options, enabled, openPorts: ours } = state;
  const port = enabled && options.openFirewall ? options.listenPort : null;
  const ask = async (each: number) => (await tools.host.portStates?.(link, each, underlay.uplinks)) ?? [];
  const states = port === null ? [] : await ask(port);
  if (port !== null && states.length === 0) {
    tools.warn(`neither ufw nor firewalld is active on this host: --open-firewall has no effect`);
  }
  for (const { at, is } of states) {
    if (is !== 'refused') continue;
    tools.warn(
      `a rule of ${at.by} refuses UDP to port ${at.port}, and cpn does not change it; remove it so that peers can dial this host`,
    );
  }
  const previous: PortState[] = [];
  for (const each of new Set(ours.map((at) => at.port))) if (each !== port) previous.push(...(await ask(each)));
  return planPorts({ link, port, ours, states: [...states, ...previous] });
}

/** Opens and closes ports in ufw and firewalld. A failure is a warning; what worked still works. */
export async function syncPorts(
  tools: Pick<Tools, 'host' | 'store' | 'warn'>,
  state: Joined,
  actual: Actual,
): Promise<{ readonly state: Joined; readonly changes: readonly Change[] }> {
  try {
    const { steps, ours } = await preparePorts(tools, state, actual);
    const planned: Joined = sameData(ours, state.openPorts) ? state : { ...state, openPorts: ours };
    if (planned !== state) await tools.store.write(planned);
    const { openPorts, done } = await doSteps(tools, steps, ours);
    const settled: Joined = openPorts.length === ours.length ? planned : { ...planned, openPorts };
    if (settled !== planned) await tools.store.write(settled);
    return { state: settled, changes: done.flatMap(({ changes }) => changes) };
  } catch (error) {
    tools.warn(expectCpnError(error).message);
    return { state, changes: [] };
  }
}

/** Closes a network's ports. Warns about each port that stays open, and returns these ports. */
export async function closePorts(
  tools: Pick<Tools, 'host' | 'warn'>,
  { interface: link, openPorts }: State,
): Promise<readonly OpenPort[]> {
  return (await doSteps(tools, planClosing(link, openPorts), openPorts)).openPorts;
}

async function doSteps(tools: Pick<Tools, 'host' | 'warn'>, steps: readonly Step[], ours: readonly OpenPort[]) {
  let openPorts = ours;
  const done: Step[] = [];
  for (const step of steps) {
    if (step.do !== 'open-port' && step.do !== 'close-port') continue;
    try {
      await tools.host.apply(step);
      done.push(step);
      if (step.do === 'close-port') openPorts = without(openPorts, step.at);
    } catch (error) {
      tools.warn(expectCpnError(error).message);
      if (step.do === 'open-port') openPorts = without(openPorts, step.at);
    }
  }
  return { openPorts, done };
}
