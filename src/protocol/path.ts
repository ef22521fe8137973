// How a place inside a value is written in messages: `items[3].when`.

const PLAIN = /^[A-Za-z_$][\w$]*$/
const LONGEST = 200

/** `['items', 3, 'when']` as `items[3].when`; with a root such as `$`, as `$.items[3].when`. */
export function pathText(keys: readonly PropertyKey[], root = ''): string {
  let text = root
  for (const key of keys) {
    text += step(key, text === '')
    // A cycle or a hostile key makes a path that nobody reads to its end.
    if (text.length > LONGEST) return `${text.slice(0, LONGEST)}…`
  }
  return text
}

function step(key: PropertyKey, first: boolean): string {
  if (typeof key === 'number') return `[${key}]`
  const name = String(key)
  if (PLAIN.test(name)) return first ? name : `.${name}`
  return `[${JSON.stringify(name)}]`
}
