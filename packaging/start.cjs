/**
 * The first file that Node reads. It is CommonJS, which Node starts without its loader of modules, and asked for the version alone it
 * loads nothing else, no module and no stream: that costs what Node costs.
 */
const { writeSync } = require('node:fs');

if (process.argv.length === 3 && process.argv[2] === '--version') tellVersion('@VERSION@');
else require('./load.cjs').load('./main.cjs').main();

function tellVersion(version) {
  try {
    writeSync(1, `${version}\n`);
  } catch (error) {
    // A reader that went away wants no more. A pipe that is full: only a stream waits.
    if (error.code === 'EAGAIN') process.stdout.on('error', () => {}).write(`${version}\n`);
    else if (error.code !== 'EPIPE') {
      process.exitCode = 1;
      process.stderr.write(`cpn: cannot write standard output (${error.code})\n`);
    }
  }
}
