import { arch, platform } from 'node:process';
import { version } from '../../core/util/version.ts';

/** From which a control plane learns version and platform of its hosts. */
export const userAgent = `cpn/${version} (${platform} ${arch})`;
