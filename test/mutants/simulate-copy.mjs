// Runs the simulation of the package built beside it. argv: the build's folder, then the options as JSON.
import { pathToFileURL } from 'node:url'
import { join } from 'node:path'

const [, , dist, options] = process.argv
const { simulate } = await import(pathToFileURL(join(dist, 'testing/simulation/simulate.js')).href)
const started = performance.now()
const { seeds, failures } = await simulate({ ...JSON.parse(options), shrinks: false })
const [first] = failures
console.log(JSON.stringify({ seeds, seconds: (performance.now() - started) / 1_000, failure: first === undefined ? null : { seed: first.seed, oracle: first.oracle, message: first.message } }))
