import { test } from 'vitest'
import { checkSame } from './same.ts'

test('random flows come to the same in an MCP App, on a page by a link and in forms', () => checkSame(15))
