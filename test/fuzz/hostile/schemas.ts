// JSON Schemas, most of them valid, some with what a validator may stumble over.
import type { Json } from '../harness/json.ts'
import { oddKey, oddValue, objectOf } from '../harness/json.ts'
import type { Random } from '../harness/random.ts'

const NAMES = ['a', 'b', 'c', '__proto__', 'constructor', 'toString', '', 'a/b', '$ref', 'properties']
const FORMATS = ['email', 'uri', 'date', 'date-time', 'uuid', 'regex', 'ipv4', 'nothing-known']
const PATTERNS = ['^a+$', '[', '\\p{L}', '^(?=x)', '\\', '(?<n>a)\\k<n>', '.*'.repeat(20)]
const REFS = [
  '#',
  '#/$defs/a',
  '#/properties/a',
  '#a',
  '#/default',
  'https://evil.example/s.json',
  '%',
  '#/$defs/%41',
  '#/$defs/a~1b',
  '',
]

export function someSchema(random: Random, depth: number): Json {
  if (random.chance(0.04)) return random.chance(0.5) ? random.chance(0.5) : oddValue(random, 1)
  const inner = (): Json => (depth > 0 ? someSchema(random, depth - 1) : { type: 'string' })
  const size = (): Json => random.pick([0, 1, 2, 3, -1, 1.5, 1e9])
  const named = (): Json => objectOf(random.list(0, 3, () => [random.pick(NAMES), inner()]))
  const parts: (() => Record<string, Json>)[] = [
    () => ({ type: 'string', minLength: size(), maxLength: size() }),
    () => ({ type: 'string', format: random.pick(FORMATS) }),
    () => ({ type: 'string', pattern: random.pick(PATTERNS) }),
    () => ({ type: 'string', enum: random.list(0, 3, () => random.pick<Json>(['x', 'y', 1, null])) }),
    () => ({
      type: 'string',
      oneOf: [
        { const: 'x', title: 'X' },
        { const: 'y', title: 'Y' },
      ],
    }),
    () => ({ type: random.pick(['number', 'integer']), minimum: size(), maximum: size(), multipleOf: size() }),
    () => ({ type: 'boolean', default: random.pick<Json>([true, 'no', null]) }),
    () => ({ type: 'array', items: inner(), minItems: size(), uniqueItems: random.chance(0.3) }),
    () => ({ type: 'array', prefixItems: random.list(0, 2, inner), items: false }),
    () => ({
      type: 'object',
      properties: named(),
      required: random.list(0, 2, () => random.pick(NAMES)),
      additionalProperties: random.pick<Json>([true, false, inner()]),
    }),
    () => ({ type: 'object', patternProperties: { [random.pick(PATTERNS)]: inner() }, unevaluatedProperties: false }),
    () => ({ $ref: random.pick(REFS) }),
    () => ({ $defs: { a: inner(), 'a/b': inner() }, $ref: '#/$defs/a' }),
    () => ({ $dynamicRef: '#x', $defs: { d: { $dynamicAnchor: 'x' } } }),
    () => ({ [random.pick(['anyOf', 'oneOf', 'allOf'])]: random.list(0, 3, inner) }),
    () => objectOf(['if', 'then', 'else'].map((key) => [key, inner()])),
    () => ({ not: inner() }),
    () => ({ const: oddValue(random, 1) }),
    () => ({ type: ['string', 'null'], title: 'T', description: 'D' }),
    () => ({
      $id: random.pick(REFS),
      $anchor: 'a',
      $schema: random.pick([
        'https://json-schema.org/draft/2020-12/schema',
        'http://json-schema.org/draft-07/schema#',
        'x',
      ]),
    }),
    () => ({ dependentRequired: { a: ['b'] }, dependentSchemas: { a: inner() }, propertyNames: inner() }),
    () => ({ type: 'string', 'x-mcp-header': random.pick(['Region', 'a b', '', 'Region']) }),
    () => objectOf([[oddKey(random), oddValue(random, 1)]]),
  ]
  const schema = random.pick(parts)()
  return random.chance(0.15) ? objectOf(Object.entries({ ...schema, ...random.pick(parts)() })) : schema
}
