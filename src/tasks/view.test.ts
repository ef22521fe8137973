import { expect, test } from 'vitest'
import { readCursor } from './view.ts'

test.each(['[1.5,"a"]', '[1e308,"a"]', '[1e19,"a"]', '[-1,"a"]', '["1","a"]', '[1]', '{}', 'x'])(
  'a cursor that holds %s is refused before a store sees it',
  (content) => {
    expect(() => readCursor(Buffer.from(content).toString('base64url'))).toThrow('Invalid cursor')
  },
)
