/** The first words of commands that have two, and what help says of them. */
export const groups: Readonly<Record<string, string>> = {
  network: 'Manage private networks',
  key: 'Manage enrolment keys',
  peer: 'Manage the peers of a network',
  user: 'Manage the users of the organisation',
  token: 'Manage your personal tokens',
  debug: 'Collect diagnostics',
  'control-plane': 'Run the embedded control plane',
};
