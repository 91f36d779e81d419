/**
 * Stands for `undici`: the HTTP/1 client alone, by the files that undici's own index.js names.
 * Reason: memory. index.js also loads caches, mocks, retries, fetch and WebSocket.
 * Gain: 1.0 MiB of the private memory of an idle daemon, 19.1 instead of 20.1 MiB. Node with a timer
 * has 8.1, and docs/performance.md promises at most 12 MiB more.
 */
const Client = require('undici/lib/dispatcher/client.js');

// index.js adds its whole API to each dispatcher.
Client.prototype.request = require('undici/lib/api/api-request.js');
Client.prototype.connect = require('undici/lib/api/api-connect.js');

module.exports = {
  Client,
  buildConnector: require('undici/lib/core/connect.js'),
  // Only `cpn api` sends a form.
  get FormData() {
    return require('undici/lib/web/fetch/formdata.js').FormData;
  },
};
