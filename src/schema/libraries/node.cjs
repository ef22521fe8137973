// The validators where code may be generated. CommonJS, because only `require` loads a library with the first schema and still lets
// every bundler see which library that is.
exports.ajv = (draft) => (draft === '7' ? require('ajv').Ajv : require('ajv/dist/2020.js').Ajv2020)
exports.cfworker = () => require('@cfworker/json-schema')
