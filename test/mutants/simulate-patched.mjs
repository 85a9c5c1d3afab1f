// Simulates a compiled package whose files are patched when they are loaded. argv: the job as JSON.
import { register } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const { dist, patches, options } = JSON.parse(process.argv[2])
const urlOf = (file) => pathToFileURL(join(dist, file)).href
register('./patch-on-load.mjs', import.meta.url, {
  data: patches.map((patch) => ({ ...patch, url: urlOf(patch.file) })),
})
const load = (file) => import(urlOf(join('testing/simulation', file)))
const { failures } =
  options.vendors === undefined
    ? await (await load('simulate.js')).simulate(options)
    : await (await load('vendors/simulate-vendors.js')).simulateVendors(options)
const [first] = failures
console.log(JSON.stringify(first === undefined ? null : { seed: first.seed, oracle: first.oracle }))
