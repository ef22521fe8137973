// Rally as it is published: the built package, its Node host, and sealed state under a given key.
import { importBuilt } from '../dist.mjs'
import { announce } from './announce.mjs'
import { app } from './app.mjs'

const { serve } = await importBuilt('node.js')

const { port } = await serve(app, { port: 0 })
announce(port)
