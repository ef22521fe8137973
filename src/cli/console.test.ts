import { expect, test } from 'vitest'
import { barText, ProgressBar } from './console.ts'

test.each([
  { progress: { progress: 0, total: 10 }, text: `[${'.'.repeat(30)}] 0% 0/10` },
  { progress: { progress: 5, total: 10, message: 'half' }, text: `[${'#'.repeat(15)}${'.'.repeat(15)}] 50% 5/10 half` },
  { progress: { progress: 20, total: 10 }, text: `[${'#'.repeat(30)}] 100% 20/10` },
  { progress: { progress: -1, total: 10 }, text: `[${'.'.repeat(30)}] 0% -1/10` },
  { progress: { progress: 3 }, text: '3' },
  { progress: { progress: 3, total: 0, message: 'a\u001B[2Jb' }, text: '3 a\\x1b[2Jb' },
])('$progress is shown as $text', ({ progress, text }) => {
  expect(barText(progress)).toBe(text)
})

test('the bar never takes a second line, is not written again unchanged, and leaves nothing behind', () => {
  const written: string[] = []
  const bar = new ProgressBar({ columns: 20, write: (text) => written.push(text) })
  bar.show({ progress: 1, message: 'm'.repeat(50) })
  bar.show({ progress: 1, message: 'm'.repeat(50) })
  bar.clear()
  bar.clear()
  expect(written).toEqual([`\r\u001B[2K1 ${'m'.repeat(17)}`, '\r\u001B[2K'])
})
