/**
 * Does to a store what its argument names, in the folders of the root that is given; for tests that kill it meanwhile.
 *
 * @module
 */
import { fileStore } from '../../src/store/file-store.ts';
import { foldersIn, state } from './samples.ts';

const [root = '', call] = process.argv.slice(2);
const store = fileStore(foldersIn(root));

// CommonJS, which it is built as, has no await here: an error that nothing catches ends the process.
if (call === 'write') void store.write(state);
if (call === 'config') void store.writeConfig('cpn0', 'new');
if (call === 'mend') void store.lock(async () => {});
if (call === 'leave') void store.lock(() => store.forget('cpn0', [root]));
