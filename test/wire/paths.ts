// Every place in a JSON value, and the value with something else in that place.

export type Path = readonly string[]

/** The whole value first, then everything inside it. */
export function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path]
  return [path, ...Object.entries(value).flatMap(([key, child]) => pathsOf(child, [...path, key]))]
}

export function at(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((inside, key) => Reflect.get(inside as object, key), value)
}

/** A copy; the value itself stays as it is. */
export function replaced(value: unknown, [key, ...rest]: Path, by: unknown): unknown {
  if (key === undefined) return by
  const copy: object = Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }
  Reflect.set(copy, key, replaced(Reflect.get(copy, key), rest, by))
  return copy
}

/** A copy in which the object at the path has more properties, `__proto__` among them if it is one of them. */
export function extended(value: unknown, path: Path, more: object): unknown {
  const object: object = { ...(at(value, path) as object) }
  for (const [key, child] of Object.entries(more)) {
    Object.defineProperty(object, key, { value: child, enumerable: true, configurable: true, writable: true })
  }
  return replaced(value, path, object)
}
