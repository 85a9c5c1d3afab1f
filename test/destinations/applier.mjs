// Applies changes of a store until it is killed, or once if asked to.
const [dist, file, url, schema, mode] = process.argv.slice(2)
const isContinuous = mode !== 'once'
const { postgres } = await import(`${dist}/destinations/postgres/destination.js`)
const { runDestination } = await import(`${dist}/destinations/loop/run-destination.js`)
const { systemClock } = await import(`${dist}/platform/clock.js`)
const { openSqliteStore } = await import(`${dist}/stores/sqlite/store.js`)
const store = await openSqliteStore({ file })
const silent = () => {}
for (;;) {
  const { report } = await runDestination(
    { name: 'copy', destination: postgres({ url, schema }), databases: ['things'], mode: 'mirror' },
    {
      store,
      ports: {
        clock: systemClock,
        random: { next: () => 0.5 },
        log: { debug: silent, info: silent, warn: silent, error: silent },
      },
      holder: 'applier',
      signal: new AbortController().signal,
      newStoreId: () => 'killed',
      limits: { rowsMax: 200, bytesMax: 1_000_000 },
    },
  )
  if (isContinuous) continue
  if (report?.error !== null) throw new Error(JSON.stringify(report))
  break
}
await store.close()
