/** The first words of commands that have two, and what help says of them. */
export const groups: Readonly<Record<string, string>> = {
  network: 'Look after private networks',
  key: 'Look after enrolment keys',
  peer: 'Look after the peers of a network',
  user: 'Look after the users of the organisation',
  token: 'Look after your personal tokens',
  debug: 'Gather what helps to find a fault',
  'control-plane': 'Run the embedded control plane',
};
