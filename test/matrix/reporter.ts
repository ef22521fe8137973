// Prints the matrix when its tests have run: what each cell has come to.
import type { Reporter, TestModule } from 'vitest/node'
import { renderMatrix } from './render.ts'
import { titleOf } from './table.ts'

export default class MatrixReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const verdicts = new Map<string, string>()
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { cell } = test.meta()
        if (cell === undefined) continue
        verdicts.set(`${titleOf(cell.row)} ${cell.name}`, test.result().state === 'passed' ? 'yes' : 'FAILED')
      }
    }
    if (verdicts.size === 0) return
    console.log(`\n${renderMatrix((row, { name }) => verdicts.get(`${titleOf(row)} ${name}`) ?? 'not run')}\n`)
  }
}
