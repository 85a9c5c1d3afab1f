// What it costs the store to read a page of 100 changes, somewhere in a log of so many entries.
import { Connection, openSession } from '../dist/stores/sqlite/connection.js'
import { Ledger } from '../dist/stores/sqlite/ledger.js'

const [file, entries] = [process.argv[2], Number(process.argv[3])]
const ledger = new Ledger(openSession(new Connection({ file }), 'default'))
const places = Array.from({ length: 2_000 }, (_, n) => Math.floor((n * 7_919 * 101) % (entries - 100)))
for (const after of places) ledger.feed({ after, limit: 100, scanMax: 1 })
const before = process.cpuUsage()
for (const after of places) ledger.feed({ after, limit: 100, scanMax: 1 })
const { user, system } = process.cpuUsage(before)
console.log(JSON.stringify({ us: (user + system) / places.length }))
