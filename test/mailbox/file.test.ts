// The mailbox in files, which tests with several processes use, fulfils the contract too.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FileMailbox } from '../legacy/file-mailbox.mjs'
import { mailboxContract } from './contract.ts'

mailboxContract('files', async () => {
  const root = await mkdtemp(join(tmpdir(), 'mailbox-'))
  return {
    part: new FileMailbox(root),
    another: new FileMailbox(root),
    elapse: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
    close: () => rm(root, { recursive: true, force: true }),
  }
})
