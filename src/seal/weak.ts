// Finds secrets that nobody drew at random: placeholders and typed patterns. It cannot measure randomness, only see its
// absence. The chance that it refuses a random secret is below 2^-60.

/** Says what makes the secret easy to guess, or `undefined`. Never repeats the secret. */
export function weaknessOf(bytes: Uint8Array, minBytes: number): string | undefined {
  const period = periodOf(bytes)
  if (period === 1) return 'it is one byte, repeated'
  if (period < minBytes && 2 * period <= bytes.length) return `it is ${period} bytes, repeated`
  if (new Set(bytes).size <= FEW_VALUES) return `it has no more than ${FEW_VALUES} different bytes`
  const counted = countedShare(bytes)
  if (counted >= MOSTLY) return 'its bytes count up or down, or repeat the one before'
  const { fresh, saved } = withoutRepeats(bytes, minBytes)
  if (fresh < minBytes && saved >= SAVED) return `it has only ${fresh} bytes without what it repeats`
  return undefined
}

/** Bytes of 32 random hexadecimal digits have about 14 values. */
const FEW_VALUES = 4
const MOSTLY = 0.75
/** Larger steps are not what people type. */
const LARGEST_STEP = 4

/** Shorter repeats may be chance. */
const SHORTEST_REPEAT = 8
/** A repeat of n bytes saves n less this: where it begins, what it repeats and how long it is could be written in as many digits. */
const REPEAT_COST = 5
/** 16 hexadecimal digits have 64 bits: the chance that a random secret can be written with so many less is 2^-64. */
const SAVED = 16

/** How many bytes do not belong to a repeat of earlier ones, up to `most`, and how many bytes the repeats save. */
function withoutRepeats(bytes: Uint8Array, most: number): { fresh: number; saved: number } {
  let fresh = 0
  let saved = 0
  for (let at = 0; at < bytes.length && fresh < most;) {
    const length = longestRepeat(bytes, at)
    const isRepeat = length >= SHORTEST_REPEAT
    if (isRepeat) saved += length - REPEAT_COST
    else fresh += 1
    at += isRepeat ? length : 1
  }
  return { fresh, saved }
}

/** How many bytes from here on are the same as some that begin earlier. */
function longestRepeat(bytes: Uint8Array, at: number): number {
  let longest = 0
  for (let start = 0; start < at; start += 1) {
    let length = 0
    while (at + length < bytes.length && bytes[start + length] === bytes[at + length]) length += 1
    longest = Math.max(longest, length)
  }
  return longest
}

/** The length of the shortest start that the bytes repeat to their end. Their own length if they repeat nothing. */
function periodOf(bytes: Uint8Array): number {
  // The failure function of Knuth, Morris and Pratt: linear, however long the secret is.
  const borders = new Uint32Array(bytes.length)
  let border = 0
  for (let end = 1; end < bytes.length; end += 1) {
    while (border > 0 && bytes[end] !== bytes[border]) border = borders[border - 1] ?? 0
    if (bytes[end] === bytes[border]) border += 1
    borders[end] = border
  }
  return bytes.length - border
}

/** The share of the most frequent small step between neighbours. */
function countedShare(bytes: Uint8Array): number {
  let most = 0
  for (let step = -LARGEST_STEP; step <= LARGEST_STEP; step += 1) {
    let count = 0
    for (let n = 1; n < bytes.length; n += 1) if ((((bytes[n - 1] ?? 0) + step) & 0xff) === bytes[n]) count += 1
    most = Math.max(most, count)
  }
  return most / (bytes.length - 1)
}
