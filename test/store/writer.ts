/**
 * Does to a store what its argument names, in the folders of the root that is given; for tests that kill it meanwhile.
 *
 * @module
 */
import { fileStore } from '../../src/store/file-store.ts';
import { foldersIn, state } from './samples.ts';

const [root = '', call] = process.argv.slice(2);
const store = fileStore(foldersIn(root));

if (call === 'write') await store.write(state);
if (call === 'config') await store.writeConfig('cpn0', 'new');
if (call === 'mend') await store.lock(async () => {});
if (call === 'leave') await store.lock(() => store.forget('cpn0', [root]));
