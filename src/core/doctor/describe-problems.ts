import { isProblem, type Problem, type ProblemCode } from '../problems/problem.ts';
import { type Finding, type FindingSubject, noteFinding, okFinding, problemFinding } from './finding.ts';

/** The names of an examined network, safe to print. */
export interface ExaminedNames {
  readonly link: string;
  readonly network: string;
}

/** The number of peers on the interface, and the number of those with a handshake. */
export interface HandshakeCount {
  readonly peers: number;
  readonly heard: number;
}

/** The subject of problems with these codes, and its finding without such a problem. */
interface Examined {
  readonly codes: readonly ProblemCode[];
  readonly subject: FindingSubject;
  readonly checked: string;
  /** Null for no finding. */
  readonly well: string | null;
}

function listExamined({ link, network }: ExaminedNames, heard: string | null): readonly Examined[] {
  const stay = `the expiry of this host in ${network}`;
  return [
    {
      codes: ['taken-down', 'network-deleted', 'interface-missing', 'peer-unlisted', 'host-unread', 'drift'],
      ...{
        subject: 'network',
        checked: `${link}, the tunnel of network ${network}`,
        well: 'matches its intended state',
      },
    },
    { codes: ['config-left'], subject: 'files', checked: `the wg-quick file of ${link}`, well: null },
    { codes: ['peer-silent'], subject: 'network', checked: `handshakes of ${link}`, well: heard },
    { codes: ['port-mismatch'], subject: 'ports', checked: ownEndpoint, well: null },
    { codes: ['route-missing'], subject: 'network', checked: `routes of ${network}`, well: null },
    { codes: ['route-bypassed'], subject: 'network', checked: `routes that lead past ${link}`, well: 'none' },
    {
      codes: ['route-foreign'],
      ...{ subject: 'network', checked: `routes into ${link} that do not belong to its network`, well: 'none' },
    },
    { codes: ['dns-file-left'], subject: 'dns', checked: `files of ${link} for a resolver`, well: null },
    { codes: ['names-port-taken'], subject: 'dns', checked: `the name server of ${link}`, well: null },
    { codes: ['peer-hidden'], subject: 'network', checked: `peers with an address of this host`, well: null },
    { codes: ['key-held'], subject: 'network', checked: `the age of the key of ${link}`, well: null },
    { codes: ['key-changing'], subject: 'key', checked: `the key of ${link}`, well: null },
    { codes: ['subnet-inside'], subject: 'network', checked: `the range of ${network}`, well: null },
    {
      codes: ['identity-cloned', 'peer-alternating'],
      ...{ subject: 'network', checked: `copies of a host of ${link}`, well: null },
    },
    { codes: ['lan-silent', 'lan-unreachable'], subject: 'forwarding', checked: `the LANs behind ${link}`, well: null },
    {
      codes: ['access-rules-unread', 'access-rules-excessive', 'access-rules-ignored'],
      ...{ subject: 'forwarding', checked: `the rules of network ${network}`, well: null },
    },
    { codes: ['address-open'], subject: 'forwarding', checked: `access to the address of ${link}`, well: null },
    {
      codes: ['awaiting-approval'],
      subject: 'network',
      checked: `the approval of this host in ${network}`,
      well: null,
    },
    {
      codes: ['peer-expired', 'expires-soon', 'login-expired', 'login-expires-soon'],
      subject: 'network',
      checked: stay,
      well: null,
    },
    {
      codes: ['map-expired', 'map-aging'],
      ...{ subject: 'network', checked: `the last confirmation of the map of ${link}`, well: null },
    },
    { codes: ['map-rolled-back'], subject: 'network', checked: `the newest map of ${network}`, well: null },
    { codes: ['secret-mismatch'], subject: 'pins', checked: `the network secret of ${link}`, well: null },
    { codes: ['pin-mismatch'], subject: 'pins', checked: `the pinned peers of ${link}`, well: 'match their pins' },
    { codes: ['sync-refused'], subject: 'api', checked: `the last sync of ${link}`, well: null },
  ];
}

export const ownEndpoint = 'the endpoint of this host in the network';

/**
 * Some subjects have a finding without a problem. Other checks report dropped packets, routes past
 * a full tunnel and rules that do not load. Only `cpn status` shows notes without a subject.
 */
export function describeProblems(
  problems: readonly Problem[],
  names: ExaminedNames,
  { peers, heard }: HandshakeCount,
): Finding[] {
  const handshakes = heard > 0 ? `${heard} of ${peers} peers completed a handshake` : null;
  const found = listExamined(names, handshakes).flatMap(({ codes, subject, checked, well }) => {
    const some = problems.filter(({ code }) => codes.includes(code)).map((each) => toFinding(each, subject, checked));
    return some.length > 0 || well === null ? some : [okFinding(subject, checked, well)];
  });
  const isSilent = peers > 0 && heard === 0 && !problems.some(({ code }) => code === 'peer-silent');
  const none = `0 of ${peers} peers completed a handshake`;
  return isSilent
    ? [...found, noteFinding('network', `handshakes of ${names.link}`, none, 'cpn explain ADDRESS')]
    : found;
}

export function toFinding(problem: Problem, subject: FindingSubject, checked: string): Finding {
  const { text, remedy } = problem;
  if (!isProblem(problem)) return noteFinding(subject, checked, text, remedy);
  return problemFinding(subject, checked, text, remedy ?? 'see cpn status');
}
