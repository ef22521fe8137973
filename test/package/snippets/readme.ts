// The README.
import type { Page } from './page.ts'

export const readmePage: Page = {
  file: 'README.md',
  given: '',
  snippets: [
    {
      has: "app.tool(\n  'deploy'",
      but: [
        ['Date.now()', '7'],
        ['plan, idempotencyKey)', 'plan, typeof idempotencyKey)'],
        ['const { url } = await serve(app, { port: 3000 })', 'const { url, close } = await serve(app, { port: 0 })'],
        ['Listening on ${url}', 'Listening on ${new URL(url).pathname}'],
      ],
      use: `
        await talk(app, 'deploy', { env: 'staging' }, [{}, { confirm: accepted({ confirm: true }) }])
        await close()
      `,
      prints: [
        'Listening on /mcp',
        'Deploy build 7 to staging?',
        'Shipping build 7 string',
        'Deployed build 7 to staging.',
      ],
    },
  ],
}
