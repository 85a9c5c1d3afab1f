// The measured process: the compiled package and one of its sources, against a vendor behind a socket in another
// process. Runs a cycle for every input line, on a clock moved as the line requests, until the input ends.
import { readFileSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

const { dist, vendor, url, store: storeUrl, limit, options = {} } = JSON.parse(process.argv[2])
const { openStore, runCycle, Worker } = await import(`${dist}/index.js`)
const { systemClock } = await import(`${dist}/platform/clock.js`)
const source = await import(`${dist}/sources/${vendor}/source.js`)

/** The largest page size that the vendor allows, by default. */
const SOURCES = {
  salesforce: () =>
    source
      .salesforce({ instanceUrl: url, accessToken: 'KEY', limit: limit ?? 2_000 })
      .object('Account', { fields: ['Name', 'Industry'] }),
  stripe: () => source.stripe({ baseUrl: `${url}/v1`, apiKey: 'KEY' }).customers,
  hubspot: () => source.hubspot({ baseUrl: url, accessToken: 'KEY' }).contacts,
  servicenow: () =>
    source.servicenow({ instanceUrl: url, user: 'KEY', password: 'KEY', limit: limit ?? 1_000 }).table('incident'),
  github: () => source.github({ baseUrl: url, token: 'KEY' }).issues,
  linear: () => source.linear({ baseUrl: url, apiKey: 'KEY', limit: limit ?? 250 }).issues,
  airtable: () => source.airtable({ baseUrl: `${url}/v0`, baseId: 'appSimulated00001', token: 'KEY' }).table('Tasks'),
  bookmarks: () => source.bookmarks({ baseUrl: url, token: 'KEY', ...options }),
  'github-stars': () => source.githubStars({ baseUrl: url, token: 'KEY' }),
  kraken: () => source.kraken({ baseUrl: url, apiKey: 'KRAKEN_KEY', apiSecret: 'KRAKEN_SECRET' }).ledgers,
  evm: () =>
    source.evm({
      address: options.address,
      operations: ['native'],
      providers: [source.alchemy({ name: 'indexer', url: `${url}/v2/key`, countMax: limit })],
    }).transfers,
  rest: () =>
    source.rest({
      baseUrl: `${url}/v1`,
      auth: source.bearer('KEY'),
      streams: [
        {
          name: 'customers',
          path: '/customers',
          records: 'data',
          key: 'id',
          query: { limit: 100 },
          page: { kind: 'token', parameter: 'starting_after', next: { last: 'id' }, more: 'has_more' },
          follow: {
            kind: 'events',
            path: '/events',
            query: { limit: 100 },
            records: 'data',
            id: 'id',
            at: 'created',
            time: 's',
            after: 'ending_before',
            order: 'newest-first',
            more: 'has_more',
            newest: { limit: 1 },
            record: 'data.object',
            deletions: { at: 'type', are: ['*.deleted'] },
            only: { at: 'data.object.object', are: ['customer'] },
          },
        },
      ],
    }).customers,
}

const worker = new Worker({ name: 'run' })
const database = worker.database('records')
const made = SOURCES[vendor]()
if ('execute' in made) worker.sync('list', { database, ...made })
else worker.track('follow', { database, source: made })

const store = await openStore(storeUrl)
let cycles = Promise.resolve()
createInterface({ input: process.stdin }).on('line', (line) => (cycles = cycles.then(() => run(JSON.parse(line)))))

async function run({ sync, aheadMs }) {
  if (sync === null) {
    await store.close()
    process.exit()
  }
  const clock = { now: () => systemClock.now() + aheadMs, sleep: systemClock.sleep }
  const startedAt = performance.now()
  const { stopReason, counts, pages, error } = await runCycle(worker, sync, {
    store,
    clock,
    secrets: { get: (name) => options.secrets?.[name] ?? 'key' },
  })
  say({
    event: 'cycle',
    stopReason,
    counts,
    pages,
    error: error?.message,
    seconds: (performance.now() - startedAt) / 1_000,
    peakMegabytes: peakMegabytes(),
  })
}

function say(fields) {
  writeSync(1, `${JSON.stringify(fields)}\n`)
}

function peakMegabytes() {
  return Math.round(Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))[1]) / 1_024)
}
