// Runs the simulation of the package built beside it. argv: the build's folder, then the options as JSON.
import { pathToFileURL } from 'node:url'
import { join } from 'node:path'

const [, , dist, text] = process.argv
const load = (file) => import(pathToFileURL(join(dist, 'testing/simulation', file)).href)
const options = { ...JSON.parse(text), firstSeed: 1, shrinks: false }
const started = performance.now()
const { seeds, failures } = options.vendors === undefined ? await (await load('simulate.js')).simulate(options) : await (await load('vendors/simulate-vendors.js')).simulateVendors(options)
const [first] = failures
console.log(JSON.stringify({ seeds, seconds: (performance.now() - started) / 1_000, failure: first === undefined ? null : { seed: first.seed, oracle: first.oracle, message: first.message } }))
