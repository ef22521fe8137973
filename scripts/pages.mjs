// For rolldown: a page that a module imports as text, such as `./page.html?raw`, with its style and script minified.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { transform } from 'esbuild'

const SUFFIX = '.html?raw'

export const pages = {
  name: 'pages',
  resolveId: (specifier, importer) => (specifier.endsWith(SUFFIX) ? join(importer, '..', specifier) : undefined),
  async load(id) {
    if (!id.endsWith(SUFFIX)) return undefined
    const page = readFileSync(id.slice(0, -'?raw'.length), 'utf8')
    const [, head, style, body, script, end] = /^(.*<style>)(.*)(<\/style>.*<script[^>]*>)(.*)(<\/script>.*)$/s.exec(
      page,
    )
    const css = await transform(style, { loader: 'css', minify: true })
    const js = await transform(script, { loader: 'js', minify: true, format: 'esm', target: 'es2022' })
    const text = [head, css.code, body, js.code, end].map((part) => part.trim()).join('')
    return { code: `export default ${JSON.stringify(text)}`, moduleType: 'js' }
  },
}
