// The statements that Rally runs for one life, recorded and repeated by hand: each for one task, with nothing checked or encoded.
import { byHand } from '../../tasks-postgres.mjs'
import { servePeer } from '../process.mjs'

await servePeer(byHand)
