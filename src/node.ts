// mcp-rally/node: the hosts that need Node: an HTTP server and the standard streams.
export { nodeHandler } from './hosts/node.ts'
export { serve, type ServeOptions, type Serving } from './hosts/serve.ts'
export { stdio, type StdioOptions } from './hosts/stdio.ts'
export { skillFolder } from './server/skill-folder.ts'
export type { SkillFolder } from './server/skill.ts'
export type { Authenticate, AuthenticatedCaller, HttpRequest } from './auth/authenticate.ts'
