/**
 * Builds the image of scripts/vm-test where it is missing, or older than the newest kernel: node
 * scripts/prepare-image.ts
 */
import { prepareImage } from '../test/vm/image.ts';

prepareImage((text) => process.stdout.write(`${text}\n`));
