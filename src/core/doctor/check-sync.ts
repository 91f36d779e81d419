import { type Finding, noteFinding, okFinding, problemFinding } from './finding.ts';

/** The last requests for the map of a network. Times are in ISO 8601. */
export interface LastSync {
  readonly lastSuccess: string | null;
  /** Why the last request of the daemon or a command failed; null if it succeeded. */
  readonly error: string | null;
  /** The reason of the last refusal; absent or null if the last request was not refused. */
  readonly refusal?: string | null | undefined;
  /** How the requests of the daemon fail; null if they succeed. */
  readonly daemonFailure: {
    readonly error: string;
    readonly since: string;
    readonly lastSuccess: string | null;
  } | null;
}

/** Reports the daemon's last sync: this command may have another environment and other CAs. */
export function checkSync(link: string, { lastSuccess, error, refusal, daemonFailure }: LastSync): Finding[] {
  const checked = `the last sync of ${link}`;
  if (daemonFailure !== null) {
    const { since, lastSuccess: before } = daemonFailure;
    const last =
      before === null ? 'it has not succeeded since it started' : `its last success was at ${minute(before)}`;
    const found = `fails since ${minute(since)}; ${last}: ${daemonFailure.error}`;
    // All clients of this host get a refusal; the control plane's findings have its remedy.
    return daemonFailure.error === refusal
      ? [noteFinding('daemon', `${checked} by the daemon`, found, elsewhere)]
      : [problemFinding('daemon', `${checked} by the daemon`, found, compare(link))];
  }
  if (error !== null) return [noteFinding('daemon', checked, `failed: ${error}`, elsewhere)];
  return lastSuccess === null ? [] : [okFinding('daemon', checked, `succeeded at ${minute(lastSuccess)}`)];
}

const elsewhere = 'see the findings about the control plane below';

const compare = (link: string): string =>
  `if the control plane answers this command, the environment of the daemon differs: "cpn set ${link}" saves --ca-file and --proxy for both, and "systemctl restart cpn" reads the CAs of this machine again`;

function minute(time: string): string {
  return `${time.slice(0, 16).replace('T', ' ')} UTC`;
}
