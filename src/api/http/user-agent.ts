import { arch, platform } from 'node:process';
import { version } from '../../core/util/version.ts';

/** A control plane reads the version and platform of its hosts from it. */
export const userAgent = `cpn/${version} (${platform} ${arch})`;
