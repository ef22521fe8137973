// A mailbox in a folder that several processes share: a folder for each box, and a file for each letter.
import { randomUUID } from 'node:crypto'
import { mkdirSync, watch } from 'node:fs'
import { link, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export class FileMailbox {
  #root

  constructor(root) {
    this.#root = root
  }

  async leave(box, number, text, keepMs) {
    const letter = join(await this.#folderOf(box), String(number))
    const draft = join(this.#root, randomUUID())
    await writeFile(draft, JSON.stringify({ until: Date.now() + keepMs, text }))
    try {
      // Is there whole, or not at all, and never in the place of another.
      await link(draft, letter)
      return true
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
      if ((await readLetter(letter)) !== undefined) return false
      await rm(letter, { force: true })
      await link(draft, letter)
      return true
    } finally {
      await rm(draft, { force: true })
    }
  }

  async after(box, number) {
    const folder = await this.#folderOf(box)
    const numbers = (await readdir(folder)).map(Number).filter((each) => each > number)
    const letters = await Promise.all(
      numbers
        .toSorted((one, other) => one - other)
        .map(async (each) => ({ number: each, text: await readLetter(join(folder, String(each))) })),
    )
    return letters.filter(({ text }) => text !== undefined)
  }

  watch(box, arrived) {
    const folder = join(this.#root, nameOf(box))
    mkdirSync(folder, { recursive: true })
    const watcher = watch(folder, { persistent: false }, () => arrived())
    return () => watcher.close()
  }

  async #folderOf(box) {
    const folder = join(this.#root, nameOf(box))
    await mkdir(folder, { recursive: true })
    return folder
  }
}

async function readLetter(file) {
  try {
    const { until, text } = JSON.parse(await readFile(file, 'utf8'))
    return until > Date.now() ? text : undefined
  } catch (error) {
    if (error.code === 'ENOENT') return undefined
    throw error
  }
}

function nameOf(box) {
  return `box-${Buffer.from(box).toString('hex')}`
}
