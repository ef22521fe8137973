// What a hostile server answers, whatever the wire: results by the name of the tool that is called, as objects or as the
// JSON text of what no object can be.

const MB = 1_000_000

const text = (said) => ({ resultType: 'complete', content: [{ type: 'text', text: said }] })

const asking = (inputRequests, requestState) => ({ resultType: 'input_required', inputRequests, requestState })

const form = (requestedSchema) => ({
  method: 'elicitation/create',
  params: { mode: 'form', message: 'Well?', requestedSchema },
})

const YES = form({ type: 'object', properties: { yes: { type: 'boolean' } }, required: ['yes'] })

const deep = (levels) => `${'{"a":'.repeat(levels)}{}${'}'.repeat(levels)}`

/** A pattern that takes for ever on what nearly fits it. */
const CATASTROPHIC = '^(a+)+$'
const NEARLY = `${'a'.repeat(40)}!`

/** Once answered, a question is not asked again. */
const onceAsked = (question) => (params) =>
  params.inputResponses === undefined ? asking({ it: question }) : text(JSON.stringify(params.inputResponses))

/** Each of 1 000 options stands for a chain of 30 references, which brings 1 000 keywords along. */
const MANY_REFERENCES = {
  type: 'object',
  properties: { a: { anyOf: Array.from({ length: 1_000 }, () => ({ $ref: '#/$defs/d0' })) } },
  $defs: Object.fromEntries(
    Array.from({ length: 31 }, (_, n) => [
      `d${n}`,
      {
        ...(n === 0 && Object.fromEntries(Array.from({ length: 1_000 }, (_each, k) => [`k${k}`, 1]))),
        ...(n === 30 ? { const: 'a' } : { $ref: `#/$defs/d${n + 1}` }),
      },
    ]),
  ),
}

export const RESULTS = {
  ping: () => text('pong'),
  asks_for_ever: () => asking({ again: YES }, 'state'),
  defers_for_ever: () => ({ resultType: 'input_required', requestState: 'later' }),
  doubles_its_state: ({ requestState = 's'.repeat(1_024) }) => asking({ again: YES }, requestState.repeat(2)),
  state_of_100_mb: () => asking({ again: YES }, 's'.repeat(100 * MB)),
  state_of_10_mb: () => asking({ again: YES }, 's'.repeat(10 * MB)),
  asks_10000_questions: () => asking(Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`q${n}`, YES]))),
  form_of_10000_fields: () =>
    asking({
      it: form({
        type: 'object',
        properties: Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`f${n}`, { type: 'string' }])),
      }),
    }),
  form_with_a_long_name: () =>
    asking({ it: form({ type: 'object', properties: { ['n'.repeat(MB)]: { type: 'null' } } }) }),
  question_of_a_long_method: () => asking({ it: { method: 'm'.repeat(MB) } }),
  question_with_a_long_key: () => asking({ ['k'.repeat(MB)]: { method: 'm'.repeat(MB) } }),
  form_in_a_circle: () =>
    asking({
      it: form({ type: 'object', properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: { $ref: '#/$defs/a' } } }),
    }),
  form_on_the_network: () =>
    asking({ it: form({ type: 'object', properties: { a: { $ref: 'http://127.0.0.1:9/schema' } } }) }),
  form_with_a_catastrophe: onceAsked(
    form({ type: 'object', properties: { word: { type: 'string', pattern: CATASTROPHIC, default: NEARLY } } }),
  ),
  form_with_a_long_default: () =>
    asking({
      it: form({
        type: 'object',
        properties: { mail: { type: 'string', format: 'email', default: `a@${'a.'.repeat(MB)}!` } },
      }),
    }),
  form_of_references: () => asking({ it: form(MANY_REFERENCES) }),
  form_from_a_value: () =>
    asking({
      it: form({ type: 'object', properties: { word: { $ref: '#/default' } }, default: { type: 'string' } }),
    }),
  visits_a_script: () => asking({ it: page('javascript:alert(1)') }),
  visits_a_file: () => asking({ it: page('file:///etc/passwd') }),
  visits_for_a_while: () => asking({ it: page(`http://127.0.0.1/${'a'.repeat(MB)}`) }),
  nests_questions: () =>
    `{"resultType":"input_required","inputRequests":{"it":{"method":"sampling/createMessage","params":${deep(50_000)}}}}`,
  nests_content: () => `{"resultType":"complete","content":[{"type":"text","text":"deep","a":${deep(50_000)}}]}`,
  structured_catastrophe: () => ({ ...text('ok'), structuredContent: { word: NEARLY } }),
  structured_long: () => ({ ...text('ok'), structuredContent: {} }),
  structured_value: () => ({ ...text('ok'), structuredContent: { word: NEARLY } }),
  structured_nest: () => `{"resultType":"complete","content":[],"structuredContent":${deep(20_000)}}`,
  structured_maze: () => ({ ...text('ok'), structuredContent: { a: 1 } }),
  structured_proto: () => `{"resultType":"complete","content":[],"structuredContent":{"__proto__":{"polluted":true}}}`,
  proto_result: () =>
    '{"__proto__":{"polluted":true,"resultType":"input_required"},"resultType":"complete","content":[{"type":"text","text":"ok","__proto__":{"polluted":true}}],"constructor":{"prototype":{"polluted":true}}}',
  proto_type: () => '{"__proto__":{"resultType":"complete","content":[]},"content":7}',
  proto_question: () =>
    '{"resultType":"input_required","inputRequests":{"__proto__":{"method":"nonsense","params":{"__proto__":{"polluted":true}}}}}',
  proto_field: () =>
    '{"resultType":"input_required","inputRequests":{"it":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{"__proto__":{"type":"string","default":"polluted"}}}}}}}',
  infinite_numbers: () =>
    '{"resultType":"input_required","inputRequests":{"it":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1e999}}}}',
}

const page = (url) => ({ method: 'elicitation/create', params: { mode: 'url', message: 'Go there.', url } })

const tool = (name, outputSchema) => ({ name, inputSchema: { type: 'object' }, outputSchema })

/** Every level asks twice about the next. */
const MAZE = Object.fromEntries(
  Array.from({ length: 30 }, (_, n) => {
    const next = n === 29 ? { not: {} } : { $ref: `#/$defs/d${n + 1}` }
    return [`d${n}`, { anyOf: [next, next] }]
  }),
)

/** Takes about 15 s to compile, and is small enough to be tried. */
const LONG = {
  type: 'object',
  dependentRequired: Object.fromEntries(
    Array.from({ length: 30 }, (_, n) => [`p${n}`, Array.from({ length: 600 }, (_each, k) => `q${k}`)]),
  ),
}

/** The answers to tools/list, by the mode that the server was started in. */
export const LISTS = {
  fine: () => ({
    tools: [
      tool('ping'),
      tool('structured_catastrophe', {
        type: 'object',
        properties: { word: { type: 'string', pattern: CATASTROPHIC } },
        patternProperties: { [CATASTROPHIC]: {} },
      }),
      tool('structured_long', LONG),
      tool('structured_value', {
        type: 'object',
        properties: { word: { $ref: '#/default' } },
        default: { type: 'string', pattern: CATASTROPHIC },
      }),
      tool('structured_nest', { type: 'object', properties: { a: { $ref: '#' } } }),
      tool('structured_maze', { type: 'object', properties: { a: { $ref: '#/$defs/d0' } }, $defs: MAZE }),
      tool('structured_proto', { type: 'object', additionalProperties: false }),
    ],
  }),
  endless: ({ cursor = '0' }) => ({ tools: [tool(`t${cursor}`)], nextCursor: String(Number(cursor) + 1) }),
  repeating: ({ cursor }) => ({ tools: [tool('ping')], nextCursor: cursor === 'a' ? 'b' : 'a' }),
  crowded: ({ cursor = '0' }) => ({
    tools: Array.from({ length: 20_000 }, (_, n) => tool(`t${n}`)),
    nextCursor: String(Number(cursor) + 1),
  }),
  heavy: ({ cursor = '0' }) => ({
    tools: [{ ...tool('ping'), description: 'd'.repeat(5 * MB) }],
    nextCursor: String(Number(cursor) + 1),
  }),
  shapeless: () => ({ tools: { length: 1e9 } }),
  malformed: () => ({ tools: [null, 7, 'ping', [], {}, { name: 'a' }, { name: 'b', inputSchema: [] }, tool('ping')] }),
  unlistable: () =>
    `{"tools":[{"name":"nest","inputSchema":{"type":"object","properties":{"a":${deep(50_000)}}}},{"name":"ping","inputSchema":{"type":"object"}}]}`,
}

export const DISCOVERIES = {
  fine: () => ({ supportedVersions: ['2026-07-28'], capabilities: {} }),
  proto: () =>
    '{"supportedVersions":["2026-07-28"],"capabilities":{"__proto__":{"polluted":true}},"__proto__":{"polluted":true}}',
  burdensome: () => ({ supportedVersions: ['2026-07-28'], capabilities: { experimental: { a: 'x'.repeat(MB) } } }),
  talkative: () => ({
    supportedVersions: ['2026-07-28'],
    capabilities: {},
    instructions: 'x'.repeat(MB),
    serverInfo: {
      ...Object.fromEntries(['name', 'version', 'title', 'description'].map((label) => [label, 'x'.repeat(MB)])),
      websiteUrl: `https://a.example/${'x'.repeat(MB)}`,
      icons: Array.from({ length: 1_000 }, (_, n) => ({ src: n === 0 ? 'x'.repeat(MB) : `icon-${n}.png` })),
    },
  }),
  nonsense: () => ({ supportedVersions: { length: 1 } }),
  verbose: () => ({ supportedVersions: Array.from({ length: 100_000 }, (_, n) => `3000-${n}`) }),
  asking: () => asking({ it: YES }),
}
