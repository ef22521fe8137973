// The store that a process of a drill shares with the others.
import { postgres } from 'mcp-rally/postgres'
import { sqlite } from 'mcp-rally/sqlite'

export function openStore({ url, schema, file }) {
  return file === undefined ? postgres(url, { schema }) : sqlite(file)
}
