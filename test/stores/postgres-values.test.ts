// Arrays in the binary format, as PostgreSQL reads them.
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ArrayValue } from '../../src/store/postgres/array-value.ts'
import { toText } from '../../src/store/postgres/text.ts'
import { useDatabase } from './database.ts'

const database = useDatabase()
let client: pg.Client

beforeAll(async () => {
  client = new pg.Client(database.url)
  await client.connect()
}, 60_000)
afterAll(() => client?.end())

const texts = fc.string({ unit: 'binary' }).map((text) => toText('text', text))
const numbers = fc.oneof(
  fc.maxSafeInteger(),
  fc.constantFrom(0, -1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 1e15, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER),
)

test('arrays arrive as they were given, with their nulls', async () => {
  const columns = fc.record({
    text: fc.array(fc.option(texts)),
    bigint: fc.array(fc.option(numbers)),
    boolean: fc.array(fc.option(fc.boolean())),
  })
  await fc.assert(
    fc.asyncProperty(columns, async ({ text, bigint, boolean }) => {
      const values = [
        new ArrayValue('text', text),
        new ArrayValue('bigint', bigint),
        new ArrayValue('boolean', boolean),
      ]
      const query = 'SELECT $1::text[] AS text, $2::bigint[] AS bigint, $3::boolean[] AS boolean'
      const { rows } = await client.query(query, values)
      expect(rows).toEqual([
        { text, bigint: bigint.map((number) => (number === null ? null : String(number))), boolean },
      ])
    }),
  )
})
