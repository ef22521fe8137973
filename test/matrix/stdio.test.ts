import { runCells } from './cells.ts'

runCells('stdio')
