/** What the daemon reports to its service manager. */
export interface SupervisorReport {
  readonly state?: 'ready' | 'reloading' | 'stopping';
  /** Resets the watchdog. */
  readonly isAlive?: boolean;
  /** One line for operators. */
  readonly status?: string;
}

/** The service manager that started the daemon. */
export interface Supervisor {
  /** The watchdog timeout in milliseconds; null without a watchdog. */
  readonly watchdogMs: number | null;
  /** Resolves after the report was delivered or failed. Reports are delivered in order. Never rejects. */
  report(report: SupervisorReport): Promise<void>;
}

/** The daemon as a service, which starts at boot and after a failure. */
export interface DaemonUnit {
  readonly name: string;
  readonly isEnabled: boolean;
  /** Starts it now and at boot; does not wait for the start. @throws CommandFailed */
  enable(): Promise<void>;
  /** Stops it, and no longer starts it at boot. @throws CommandFailed */
  disable(): Promise<void>;
}
