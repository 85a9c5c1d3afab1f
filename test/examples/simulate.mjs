// Runs an example as in its README; sends the vendor's final records to its parent.
import { simulate } from '../../examples/simulate.mjs'

const { code, vendor, databases } = await simulate(process.argv[2], process.argv[3])
process.send(
  {
    code,
    truth: Object.fromEntries(Object.entries(databases).map(([database, type]) => [database, vendor.truth(type)])),
  },
  () => process.exit(),
)
