// Asks the person at the terminal to answer in place of a model, which rally does not have.
import type { SampleQuestion } from '../client/answers/question.ts'
import type { ContentBlock, CreateMessageResult } from '../protocol/messages.ts'
import { cleanLine, cleanMessage } from './clean.ts'
import { Unanswered } from './exit.ts'
import { Escaped } from './prompts.ts'
import type { Prompts } from './prompts.ts'

export async function askModel(question: SampleQuestion, prompts: Prompts): Promise<CreateMessageResult> {
  prompts.say(`The server asks a model, and rally has none. Answer in its place:\n${cleanMessage(promptOf(question))}`)
  try {
    const text = await prompts.text('Answer of the model', {
      placeholder: `at most ${question.maxTokens} tokens`,
      check: (typed) => (typed === '' ? 'Type an answer, or press Esc.' : undefined),
    })
    return { role: 'assistant', content: { type: 'text', text }, model: 'a person with rally', stopReason: 'endTurn' }
  } catch (error) {
    if (error instanceof Escaped) throw new Unanswered('The question to a model was left without an answer.')
    throw error
  }
}

/** What the model would read. The client has only checked that each message has content, so it may be anything. */
function promptOf({ systemPrompt, messages }: SampleQuestion): string {
  const said = messages.map(({ role, content }) =>
    [content].flat().map((block) => `${cleanLine(role)}: ${textOf(block as ContentBlock)}`),
  )
  return [...(systemPrompt === undefined ? [] : [`system: ${systemPrompt}`]), ...said.flat()].join('\n')
}

function textOf(block: ContentBlock): string {
  return block?.type === 'text' ? block.text : `[${cleanLine(block?.type)}]`
}
