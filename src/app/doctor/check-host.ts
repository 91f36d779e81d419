import { checkKernel, checkManagers, checkPrivilege, checkTools } from '../../core/doctor/check-host.ts';
import type { HostCheck } from './examination.ts';

/** What of the operating system is there, and what this process may do with it. */
export const hostChecks: readonly HostCheck[] = [
  {
    subject: 'tools',
    async examine({ inspector }, { states }) {
      const forwards = states.some(({ enrollment }) => enrollment.type === 'connector');
      const pings = states.some(({ options }) => options.probes.some(({ port }) => port === null));
      return checkTools(await inspector.tools(), { forwards, pings });
    },
  },
  {
    subject: 'kernel',
    examine: async ({ inspector }) => [checkKernel(await inspector.kernel(), await inspector.tools())],
  },
  {
    subject: 'privileges',
    examine: async ({ inspector }) => [checkPrivilege(await inspector.mayAdminister())],
  },
  {
    subject: 'managers',
    examine: async ({ inspector }) => checkManagers(await inspector.managers(), await inspector.preparedManagers()),
  },
];
