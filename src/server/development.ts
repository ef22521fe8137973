// What `rally dev` gives to every app of the process that it starts: a key that survives a restart, and an observer that prints.
//
// It is found through a global symbol, because the project may have another copy of this package than the command. Only code that
// runs in the process can set it: no environment variable changes how an app seals.
import type { Observer } from '../flow/observer.ts'
import type { AppOptions } from './options.ts'

export interface Development {
  readonly key: string
  readonly observer: Observer
}

const PLACE = Symbol.for('mcp-rally.development')

type Global = { [PLACE]?: Development }

export function setDevelopment(development: Development | undefined): void {
  if (development === undefined) delete (globalThis as Global)[PLACE]
  else (globalThis as Global)[PLACE] = development
}

/** The options as they are, unless `rally dev` runs this process. Keys and codecs of the author stay in use. */
export function withDevelopment<Options extends AppOptions>(options: Options): Options {
  const development = (globalThis as Global)[PLACE]
  if (development === undefined) return options
  const hasSeal = options.keys !== undefined || options.codec !== undefined
  return {
    ...options,
    ...(!hasSeal && { keys: [development.key] }),
    observers: [...(options.observers ?? []), development.observer],
  }
}
