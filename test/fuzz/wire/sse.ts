// Server-sent events as they must be read: by the rules of the HTML standard, whatever the server writes.

export interface SseEvent {
  id?: string
  data?: string
}

/** The complete events of a text. An event without data is one that only moves the last id on. */
export function readEvents(text: string): SseEvent[] {
  const blocks = text.replaceAll(/\r\n?/g, '\n').split('\n\n')
  // What follows the last blank line is not complete.
  return blocks.slice(0, -1).map((block) => {
    const event: SseEvent = {}
    for (const line of block.split('\n')) {
      const [, field = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? []
      if (field === 'id') event.id = value
      if (field === 'data') event.data = event.data === undefined ? value : `${event.data}\n${value}`
    }
    return event
  })
}
