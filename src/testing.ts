// mcp-rally/testing: runs a handler in the harshest way, and says where it does not replay.
export { harsh, type HarshOptions } from './testing/harsh.ts'
export { madeUp } from './testing/default-answer.ts'
export { ReplayMismatch } from './testing/mismatch.ts'
export { accept, cancel, decline, type Answerer, type AskedQuestion } from './testing/questions.ts'
export { type Handler, type Report, type RunOptions } from './testing/report.ts'
export { straight } from './testing/single-pass.ts'
