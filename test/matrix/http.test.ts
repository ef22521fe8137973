import { runCells } from './cells.ts'

runCells('HTTP')
