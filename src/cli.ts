#!/usr/bin/env node
// The bin `rally`: the terminal client.
import { readFileSync } from 'node:fs'
import { main } from './cli/main.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
await main(version)
