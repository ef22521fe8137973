/** For Node's option `--import`: a process in which the package pg is not installed. */
export const WITHOUT_PG = `data:text/javascript,${encodeURIComponent(`
  import { register } from 'node:module'
  const hooks = \`export function resolve(name, context, next) {
    if (name === 'pg') throw Object.assign(new Error("Cannot find package 'pg'"), { code: 'ERR_MODULE_NOT_FOUND' })
    return next(name, context)
  }\`
  register('data:text/javascript,' + encodeURIComponent(hooks))
`)}`
