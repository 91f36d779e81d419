import { CpnError, quote } from './cpn-error.ts';

/** A value from a user, a file or the network breaks a rule. A secret is passed as undefined. */
export class InvalidValue extends CpnError {
  override readonly name = 'InvalidValue';
  readonly field: string;
  readonly rule: string;
  readonly remedy: string | undefined;

  constructor(field: string, value: unknown, rule: string, remedy?: string) {
    const shown = value === undefined ? '' : ` ${quote(value)}`;
    super(`${field}${shown} ${rule}${remedy ? `; ${remedy}` : ''}`, { facts: { field, rule } });
    this.field = field;
    this.rule = rule;
    this.remedy = remedy;
  }
}

/** The command line is not valid: a flag is missing, or two flags exclude each other. */
export class WrongUsage extends CpnError {
  override readonly name = 'WrongUsage';
}

/** The host has not joined the network that the command names. */
export class NotJoined extends CpnError {
  override readonly name = 'NotJoined';
}

/** The control plane reported a network's deletion, so a command for all networks skips it. */
export class LeftDown extends CpnError {
  override readonly name = 'LeftDown';

  constructor(networkInterface: string, network: string, service: string) {
    super(
      `${networkInterface} stays down: network ${quote(network)} was deleted at ${service}; "cpn up ${networkInterface}" brings it up until the control plane states the deletion again, "cpn leave ${networkInterface}" removes its stored state`,
      { facts: { interface: networkInterface, network, service } },
    );
  }
}
