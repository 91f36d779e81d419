/**
 * What the program uses of undici, in whose place the build puts it: all of it would take 13 MiB more of a daemon's memory, for good.
 * The files are those that undici's own index.js names, at the version that the lockfile pins.
 */
const Client = require('undici/lib/dispatcher/client.js');

Client.prototype.request = require('undici/lib/api/api-request.js');
Client.prototype.connect = require('undici/lib/api/api-connect.js');

module.exports = {
  Client,
  buildConnector: require('undici/lib/core/connect.js'),
  // A form is the matter of a command of its own.
  get FormData() {
    return require('undici/lib/web/fetch/formdata.js').FormData;
  },
};
