// All targets, in the order in which they run.
import type { Target } from '../harness/target.ts'
import { client } from './client.ts'
import { dispatch } from './dispatch.ts'
import { http } from './http.ts'
import { older } from './older.ts'
import { planted } from './planted.ts'
import { schema } from './schema.ts'
import { seal } from './seal.ts'
import { stdio } from './stdio.ts'
import { stores } from './stores.ts'

export const targets: readonly Target[] = [seal, dispatch, http, stdio, older, client, schema, stores, planted]
