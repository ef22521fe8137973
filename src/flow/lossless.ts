// The types that JSON keeps: what a step, a scope or a resolver may return, because the journal holds it as JSON.

/**
 * What a step, a scope or a resolver may return: a `T` that JSON keeps, or a promise of one. Anything else is a type error that says
 * what JSON would lose. `unknown` and `any` pass, and are checked when the value is recorded.
 *
 * @example
 * // A generic helper hands the requirement on to its caller.
 * function timed<T>(io: Io, key: string, run: () => Recordable<T>): Promise<T> {
 *   return io.step(key, run)
 * }
 */
// `T` is in a branch that does not narrow it: TypeScript infers a union such as `Circle | Square` only from there.
/** What a step may return: a value that is the same after it went through JSON. */
export type Recordable<T> = IsLossless<T> extends false ? Lossless<T> | Promise<Lossless<T>> : T | Promise<T>

/** `T` if JSON keeps it, and otherwise what `T` would have to be. */
export type Kept<T> = IsLossless<T> extends false ? Lossless<T> : T

type IsLossless<T> = [T] extends [Lossless<T>] ? true : false

/** `T`, with a `NotJson` in the place of everything that JSON would lose. */
export type Lossless<T> = unknown extends T
  ? T
  : T extends string | number | boolean | null | undefined | void
    ? T
    : T extends bigint | symbol | Lossy
      ? NotJson<Advice<T>>
      : T extends readonly (infer Item)[]
        ? LosslessArray<T, Item>
        : T extends object
          ? { [K in keyof T]: Lossless<T[K]> }
          : T

/** TypeScript resolves these types only when it needs them. So `T` may contain itself, as a type for any JSON does. */
type LosslessArray<T extends readonly unknown[], Item> =
  Exclude<keyof T, keyof unknown[] | `${number}`> extends never
    ? number extends T['length']
      ? readonly LosslessItem<Item>[]
      : { [K in keyof T as K extends `${number}` ? K : never]: Lossless<T[K]> }
    : NotJson<'is an array with other properties, which JSON leaves out. Use [...array].'>

/** JSON leaves out a property that is undefined, but turns such an item into null. An item that a tuple may lack is fine. */
type LosslessItem<Item> = unknown extends Item ? Item : undefined extends Item ? UndefinedItem : Lossless<Item>

type UndefinedItem = NotJson<'is undefined, which JSON does not have in an array. Use null.'>

/** No value has this type: it is in the place of one that JSON would lose. */
export interface NotJson<Why extends string> {
  readonly '~notJson': Why
}

type Lossy =
  | ((...args: never[]) => unknown)
  | Date
  | ReadonlyMap<unknown, unknown>
  | ReadonlySet<unknown>
  | PromiseLike<unknown>
  | RegExp
  | ArrayBufferView
  | ArrayBuffer

type Advice<T> = T extends bigint
  ? 'is a BigInt, which JSON does not have. Use a string, or Number().'
  : T extends Date
    ? 'is a Date, which JSON turns into a string. Use its toISOString().'
    : T extends ReadonlyMap<unknown, unknown>
      ? 'is a Map, which JSON empties. Use Object.fromEntries(map), or [...map].'
      : T extends ReadonlySet<unknown>
        ? 'is a Set, which JSON empties. Use [...set].'
        : T extends PromiseLike<unknown>
          ? 'is a Promise, which JSON empties. Await it first.'
          : T extends ArrayBufferView | ArrayBuffer
            ? 'is binary data, which JSON does not have. Use base64.'
            : T extends RegExp
              ? 'is a RegExp, which JSON empties. Use its source.'
              : 'is a function or a symbol, which JSON does not have. Leave it out.'
