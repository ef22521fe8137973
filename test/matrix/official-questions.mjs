// What the official servers, of both versions, ask and say, in the wire's own words.
const object = (properties) => ({ type: 'object', properties, required: Object.keys(properties) })

export const SURE = object({ confirm: { type: 'boolean' } })
export const WHO = object({ name: { type: 'string', minLength: 2 } })
export const AGE = object({ years: { type: 'integer', minimum: 0, maximum: 150 } })
export const WHERE = object({ to: { type: 'string', enum: ['sea', 'hills'] } })

export function form(message, requestedSchema) {
  return { mode: 'form', message, requestedSchema }
}

export function prompt(text) {
  return { messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens: 50 }
}

export function said(text) {
  return { content: [{ type: 'text', text }] }
}

export function deployed(env, action, content) {
  return action === 'accept' ? `Deployed to ${env}: ${content.confirm}` : `The user said ${action}.`
}

export function trip({ name }, { to }, { content }, { roots }) {
  return `${name} to the ${to}. ${content.text} ${roots.length} roots.`
}
