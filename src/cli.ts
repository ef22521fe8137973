#!/usr/bin/env node
// The bin `rally`: the terminal client.
import { main } from './cli/main.ts'

await main()
