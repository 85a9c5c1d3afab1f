// Applies changes of a store to a lake until it is killed, or once if asked to; then it prints its peak memory.
const [dist, file, folder, format, mode] = process.argv.slice(2)
const isContinuous = mode !== 'once'
const { lake } = await import(`${dist}/destinations/lake/destination.js`)
const { runDestination } = await import(`${dist}/destinations/loop/run-destination.js`)
const { systemClock } = await import(`${dist}/platform/clock.js`)
const { openSqliteStore } = await import(`${dist}/stores/sqlite/store.js`)
const store = await openSqliteStore({ file })
const silent = () => {}
const rowsMax = Number(process.env.TIDEMARK_DESTINATION_BATCH ?? 200)
for (;;) {
  const { report } = await runDestination(
    { name: 'copy', destination: lake({ folder, format }), databases: ['things'], mode: 'mirror' },
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
      limits: { rowsMax, bytesMax: 8_000_000 },
    },
  )
  if (isContinuous) continue
  if (report?.error !== null) throw new Error(JSON.stringify(report))
  break
}
await store.close()
process.stdout.write(`${Math.round(process.resourceUsage().maxRSS / 1024)}\n`)
