// The store that a process of a drill shares with the others, and the package that it runs.
import { postgres } from 'mcp-rally/postgres'
import { sqlite } from 'mcp-rally/sqlite'

export function openStore({ url, schema, file }, stores = { postgres, sqlite }) {
  return file === undefined ? stores.postgres(url, { schema }) : stores.sqlite(file)
}

/** An entry of the package: of this checkout, or of the build in the folder `dist`, a URL. */
export function importBuilt(entry, dist) {
  return import(new URL(`${entry}.js`, dist ?? new URL('../../dist/', import.meta.url)).href)
}
