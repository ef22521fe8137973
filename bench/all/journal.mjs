// What a round costs as its journal grows: CPU time of one dispatch in the process, without a network, and the size of the token.
import { startChild } from '../child.mjs'

const sizes = [1, 2, 5, 10, 20, 50, 100, 150, 200]
const kinds = ['answers', 'steps']

export async function measureJournal({ quick }) {
  const milliseconds = quick ? 100 : 400
  const child = startChild('the journal', new URL('./journal-process.mjs', import.meta.url))
  try {
    await child.next()
    const results = []
    for (const kind of kinds)
      for (const entries of sizes)
        results.push({ kind, entries, ...(await child.ask({ kind, entries, milliseconds, rounds: 5 }, 60_000)) })
    return { milliseconds, results }
  } finally {
    child.stop()
  }
}
