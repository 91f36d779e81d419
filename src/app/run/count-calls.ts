import { CpnError } from '../../core/errors/index.ts';
import type { Tools } from '../tools.ts';

/** Returns tools that count each failed call to the control plane for the network of `link`; an aborted call is no failure. */
export function countCalls(tools: Tools, link: string): Tools {
  const counted =
    <Given extends unknown[], Reply>(operation: string, call: (...given: Given) => Promise<Reply>) =>
    async (...given: Given): Promise<Reply> => {
      try {
        return await call(...given);
      } catch (error) {
        if (error instanceof CpnError) tools.meter.callFailed(link, operation, error.name);
        throw error;
      }
    };
  return {
    ...tools,
    async connect(known, patience) {
      const service = await tools.connect(known, patience);
      return {
        ...service,
        readMap: counted('read_map', service.readMap),
        withdraw: counted('withdraw', service.withdraw),
        announceSecret: counted('announce_secret', service.announceSecret),
        changeKey: counted('change_key', service.changeKey),
      };
    },
  };
}
