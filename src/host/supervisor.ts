/** What is told of a daemon to whoever started it. */
export interface Report {
  readonly state?: 'ready' | 'reloading' | 'stopping';
  /** Says that it is alive. */
  readonly isAlive?: boolean;
  /** How it is, in a line for a person. */
  readonly status?: string;
}

/** Whoever started the daemon, and wants to know how it is. */
export interface Supervisor {
  /** Milliseconds within which it is ended unless it says that it is alive; null where nobody waits for that. */
  readonly patienceMs: number | null;
  /** Resolves when it was told, or could not be; reports arrive in the order of the calls. Never rejects. */
  tell(report: Report): Promise<void>;
}

/** The daemon as the operating system starts it, with this host and again when it fails. */
export interface DaemonUnit {
  /** What a person calls it. */
  readonly name: string;
  readonly isEnabled: boolean;
  /** Has it start with this host, and now; does not wait until it has. @throws CommandFailed */
  enable(): Promise<void>;
  /** Ends it, and has it start no more. @throws CommandFailed */
  disable(): Promise<void>;
}
