// mcp-rally/testing: runs a handler under the hardest conditions, and reports where its replay differs.
export { harsh, type HarshOptions, type HarshRunOptions } from './testing/harsh.ts'
export { madeUp } from './testing/default-answer.ts'
export { ReplayMismatch } from './testing/replay-check.ts'
export { accept, cancel, decline, type Answerer, type AskedQuestion } from './testing/questions.ts'
export type { TestCaller } from './testing/callers.ts'
export { type Handler, type Report, type RunOptions } from './testing/report.ts'
export type { ToolCallOptions } from './testing/subject.ts'
export { straight } from './testing/single-pass.ts'
