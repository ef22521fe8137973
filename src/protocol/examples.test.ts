import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { EXAMPLES, specValidator } from '../../test/spec/validate.ts'

const examples = readdirSync(EXAMPLES).flatMap((definition) =>
  readdirSync(new URL(`${definition}/`, EXAMPLES)).map((file) => ({ definition, file })),
)

describe('the official examples', () => {
  test('are all there', () => {
    expect(examples.length).toBe(129)
  })

  test.each(examples)('$definition/$file fits its definition', ({ definition, file }) => {
    const message: unknown = JSON.parse(readFileSync(new URL(`${definition}/${file}`, EXAMPLES), 'utf8'))
    expect(specValidator(definition)(message)).toEqual([])
  })
})

describe('specValidator', () => {
  test('says where a message is wrong', () => {
    expect(specValidator('CallToolResult')({ resultType: 'complete', content: [{ type: 'text' }] })).toContain(
      "/content/0 must have required property 'text'",
    )
  })

  test('names a definition that does not exist', () => {
    expect(() => specValidator('CallToolResponse')).toThrow('defines no "CallToolResponse"')
  })
})
