// CommonJS, so that a bundler sees the optional peer, and does without it where it is not installed.
exports.loadLibsql = () => {
  try {
    return { Driver: require('libsql') }
  } catch (cause) {
    return { cause }
  }
}
