// Applies changes of a store until it is killed, or once if asked to.
const [dist, file, kind, options, mode, rowsMax] = process.argv.slice(2)
const isContinuous = mode !== 'once'
const module = await import(`${dist}/destinations/${kind}/destination.js`)
const { runDestination } = await import(`${dist}/destinations/loop/run-destination.js`)
const { systemClock } = await import(`${dist}/platform/clock.js`)
const { openSqliteStore } = await import(`${dist}/stores/sqlite/store.js`)
const store = await openSqliteStore({ file })
const silent = () => {}
console.log('ready')
for (;;) {
  const { report } = await runDestination(
    { name: 'copy', destination: module[kind](JSON.parse(options)), databases: ['things'], mode: 'mirror' },
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
      limits: { rowsMax: Number(rowsMax), bytesMax: 4_000_000 },
    },
  )
  if (isContinuous) continue
  if (report?.error !== null) throw new Error(JSON.stringify(report))
  break
}
await store.close()
