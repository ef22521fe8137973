// The runtimes and frameworks that the contract runs in. docs/tried.md lists them.

/** By the key in package.json beside this file. */
export const runtimes = [
  { name: 'Node 22', package: 'node22' },
  { name: 'Node 24', package: 'node24' },
  { name: 'Bun', package: '@oven/bun-linux-x64' },
  { name: 'Deno', package: '@deno/linux-x64-glibc' },
] as const

/** By their headings in docs/frameworks.md, in that order. The first package is the framework. */
export const frameworks = [
  { title: 'Express', packages: ['express'] },
  { title: 'Fastify', packages: ['fastify'] },
  { title: 'Koa', packages: ['koa', '@koa/bodyparser'] },
  { title: 'Hono', packages: ['hono', '@hono/node-server'] },
  { title: 'Hono in Bun', packages: ['hono'] },
  { title: 'h3', packages: ['h3'] },
  { title: 'Next.js', packages: ['next', 'react', 'react-dom'] },
] as const

/** Debian's package, which is not pinned. The tests fail with an older one. */
export const CHROMIUM = 150
