// Rally as it is published: the built package, its Node host, and sealed state under a given key.
import { serve } from '../../dist/node.js'
import { announce } from './announce.mjs'
import { app } from './app.mjs'

const { port } = await serve(app, { port: 0 })
announce(port)
