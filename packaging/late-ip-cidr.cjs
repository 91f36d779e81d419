/** What the program uses of ip-cidr, in whose place the build puts it: its 90 KB are evaluated when the first prefix from outside is read. */
module.exports = {
  isValidCIDR: (text) => require('ip-cidr/index.js').default.isValidCIDR(text),
};
