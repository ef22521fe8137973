// The codes of errors, as a caller sees them: every class has its own, and all of them are in one union.
import type { Declined, FlowError, ProtocolError, RallyErrorCode, StepFailed } from 'mcp-rally'
import { RallyError } from 'mcp-rally'
import type { ClientError } from 'mcp-rally/client'
import type { ReplayMismatch } from 'mcp-rally/testing'
import { expectTypeOf, test } from 'vitest'

test('every error class has codes of the one union', () => {
  expectTypeOf<ClientError['code']>().toExtend<RallyErrorCode>()
  expectTypeOf<FlowError['code']>().toExtend<RallyErrorCode>()
  expectTypeOf<Declined['code']>().toEqualTypeOf<'DECLINED'>()
  expectTypeOf<ProtocolError['code']>().toEqualTypeOf<'PROTOCOL'>()
  expectTypeOf<ReplayMismatch['code']>().toEqualTypeOf<'REPLAY_MISMATCH'>()
})

test('a failed step has the code of the error that it threw', () => {
  expectTypeOf<string>().toExtend<StepFailed['code']>()
  expectTypeOf<number>().toExtend<StepFailed['code']>()
})

test('an error has a code of the union, and no other', () => {
  expectTypeOf(RallyError).toBeConstructibleWith('OPTION_INVALID', 'x')
  // @ts-expect-error: not a code
  expectTypeOf(new RallyError('APP', 'x')).toExtend<Error>()
})
