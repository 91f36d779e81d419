/** A report of the daemon to its service manager. */
export interface SupervisorReport {
  readonly state?: 'ready' | 'reloading' | 'stopping';
  /** Resets the watchdog. */
  readonly isAlive?: boolean;
  /** One line for operators. */
  readonly status?: string;
}

/** The service manager that started the daemon. */
export interface Supervisor {
  /** The watchdog timeout in milliseconds. Null without a watchdog. */
  readonly watchdogMs: number | null;
  /** Resolves after the report was delivered or failed. Preserves the order. Never rejects. */
  report(report: SupervisorReport): Promise<void>;
}

/** The daemon as a service, which starts at boot and restarts after a failure. */
export interface DaemonUnit {
  readonly name: string;
  readonly isEnabled: boolean;
  /** Starts the service now and at boot, without waiting for the start. @throws CommandFailed */
  enable(): Promise<void>;
  /** Stops the service, and disables its start at boot. @throws CommandFailed */
  disable(): Promise<void>;
}
