// Applies changes of a store until it is killed, or once if asked to.
const { dist, file, kind, options, mode, limits, isOnce } = JSON.parse(process.argv[2])
const { [kind]: create } = await import(`${dist}/destinations/${kind}/destination.js`)
const { runDestination } = await import(`${dist}/destinations/loop/run-destination.js`)
const { systemClock } = await import(`${dist}/platform/clock.js`)
const { openSqliteStore } = await import(`${dist}/stores/sqlite/store.js`)
const store = await openSqliteStore({ file })
const created = create(options)
const destination = {
  ...created,
  open: async (context) => {
    const session = await created.open(context)
    process.send('open')
    return session
  },
}
const silent = () => {}
for (;;) {
  const { report } = await runDestination(
    { name: 'copy', destination, databases: ['things'], mode },
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
      ...(limits !== null && { limits }),
    },
  )
  if (!isOnce) continue
  if (report?.error !== null) throw new Error(JSON.stringify(report))
  break
}
await store.close()
process.disconnect()
