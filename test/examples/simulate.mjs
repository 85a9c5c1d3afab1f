// An example run as its README says; tells its parent what the vendor holds in the end.
import { simulate } from '../../examples/simulate.mjs'

const { code, vendor, databases } = await simulate(process.argv[2], process.argv[3])
process.send({ code, truth: Object.fromEntries(Object.entries(databases).map(([database, type]) => [database, vendor.truth(type)])) }, () => process.exit())
