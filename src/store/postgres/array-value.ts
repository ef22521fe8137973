// An array as a value of a query, in PostgreSQL's binary format. As text, every element would be escaped here and parsed there, which
// takes several times as long.

/** The number of each type in PostgreSQL, which is the same everywhere. */
const TYPES = { boolean: 16, bigint: 20, text: 25 } as const

export type ElementType = keyof typeof TYPES

export class ArrayValue {
  readonly type: ElementType
  readonly elements: readonly unknown[]

  /** Each element is of the type, or null. */
  constructor(type: ElementType, elements: readonly unknown[]) {
    this.type = type
    this.elements = elements
  }

  /** Called by the package pg when it sends the query. It sends a Buffer as it is. */
  toPostgres(): Buffer {
    const { type, elements } = this
    const array = Buffer.allocUnsafe(
      HEADER_BYTES + elements.reduce<number>((sum, element) => sum + 4 + sizeOf(type, element), 0),
    )
    // One dimension, with nulls, of this type, of this length, from index 1.
    let at = array.writeInt32BE(elements.length === 0 ? 0 : 1, 0)
    for (const field of [1, TYPES[type], elements.length, 1]) at = array.writeInt32BE(field, at)
    for (const element of elements) at = writeElement(array, at, type, element)
    return elements.length === 0 ? array.subarray(0, EMPTY_BYTES) : array
  }
}

const HEADER_BYTES = 20
/** Without a dimension. */
const EMPTY_BYTES = 12
const TWO_32 = 2 ** 32

function sizeOf(type: ElementType, element: unknown): number {
  if (element === null) return 0
  if (type === 'text') return Buffer.byteLength(element as string)
  return type === 'bigint' ? 8 : 1
}

/** Returns where the next one begins. */
function writeElement(array: Buffer, at: number, type: ElementType, element: unknown): number {
  if (element === null) return array.writeInt32BE(-1, at)
  if (type === 'text') {
    const length = array.write(element as string, at + 4)
    array.writeInt32BE(length, at)
    return at + 4 + length
  }
  if (type === 'boolean') return array.writeUInt8(element === true ? 1 : 0, array.writeInt32BE(1, at))
  const number = element as number
  const high = array.writeInt32BE(Math.floor(number / TWO_32), array.writeInt32BE(8, at))
  return array.writeUInt32BE(number >>> 0, high)
}
