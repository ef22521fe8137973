import { test } from 'vitest'
import { checkSame } from '../apps/same.ts'

test('500 random flows come to the same in an MCP App, on a page by a link and in forms', () => checkSame(500), 480_000)
