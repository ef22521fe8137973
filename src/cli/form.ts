// Has the person at the terminal fill in a form, or say no to it.
import type { FormQuestion } from '../client/answers/question.ts'
import type { ElicitResult, FormValue } from '../protocol/messages.ts'
import { cleanMessage } from './clean.ts'
import { askField } from './field.ts'
import { Escaped } from './prompts.ts'
import type { Prompts } from './prompts.ts'

export async function fillIn({ message, form }: FormQuestion, prompts: Prompts): Promise<ElicitResult> {
  prompts.say(cleanMessage(message))
  const fields = Object.entries(form.properties)
  const required = new Set(form.required)
  const content = new Map<string, FormValue>()
  for (;;) {
    try {
      for (const [name, schema] of fields) {
        const isRequired = required.has(name)
        const value = await askField({ name, schema, isRequired, before: content.get(name) }, prompts)
        if (value === undefined) content.delete(name)
        else content.set(name, value)
      }
      const action = fields.length === 1 ? 'accept' : await review(fields.length, prompts)
      if (action === 'accept') return { action, content: Object.fromEntries(content) }
      if (action !== 'change') return { action }
    } catch (error) {
      if (!(error instanceof Escaped)) throw error
      const action = await wayOut(prompts)
      if (action !== 'back') return { action }
    }
  }
}

/** Nothing of several answers is sent before the last can be taken back. */
function review(fields: number, prompts: Prompts): Promise<'accept' | 'change' | 'decline'> {
  return prompts.choose('Send this?', [
    { value: 'accept', label: 'Send' },
    ...(fields > 0 ? [{ value: 'change' as const, label: 'Change' }] : []),
    { value: 'decline', label: 'Decline' },
  ])
}

/** The three ways out of a question. Leaving this one too is going back. */
export async function wayOut(prompts: Prompts): Promise<'back' | 'decline' | 'cancel'> {
  try {
    return await prompts.choose('Leave the question?', [
      { value: 'back', label: 'Go back to it' },
      { value: 'decline', label: 'Decline', hint: 'say no to the server' },
      { value: 'cancel', label: 'Cancel', hint: 'close it without an answer' },
    ])
  } catch (error) {
    if (error instanceof Escaped) return 'back'
    throw error
  }
}
