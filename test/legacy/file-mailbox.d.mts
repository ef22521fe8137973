import type { Mailbox } from 'mcp-rally'

export class FileMailbox implements Mailbox {
  constructor(root: string)
  leave: Mailbox['leave']
  after: Mailbox['after']
  watch: Mailbox['watch']
}
