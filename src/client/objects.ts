// Looks at values that came from outside.

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a value has at most so many properties and items, at any depth. Does not recurse, and stops as soon as it knows. */
export function withinSize(value: unknown, most: number): boolean {
  const open: unknown[] = [value]
  let left = most
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (typeof node !== 'object' || node === null) continue
    const children: unknown[] = Array.isArray(node) ? node : Object.values(node)
    left -= children.length
    if (left < 0) return false
    for (const child of children) if (typeof child === 'object' && child !== null) open.push(child)
  }
  return true
}
