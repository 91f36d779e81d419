/** What the program uses of tweetnacl, in whose place the build puts it: its tables are made when the first key pair is. */
module.exports = {
  get box() {
    return require('tweetnacl/nacl-fast.js').box;
  },
  get scalarMult() {
    return require('tweetnacl/nacl-fast.js').scalarMult;
  },
};
