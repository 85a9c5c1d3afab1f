// Commits mixed changes to a store until its log has `until` entries, or until it is killed.
const [dist, file, rows, until, seed] = process.argv.slice(2)
const { SyncDriver, remove, seededRandom, upsert } = await import(`${dist}/testing/store-cases/harness.js`)
const { openSqliteStore } = await import(`${dist}/stores/sqlite/store.js`)
const store = await openSqliteStore({ file })
const random = seededRandom(Number(seed))
console.log('ready')
const driver = await SyncDriver.acquire(store, { evict: 'runner-1' })
for (let head = await store.headSequence(); head < Number(until); head = await store.headSequence()) {
  const landings =
    head < Number(rows)
      ? Array.from({ length: Math.min(5_000, Number(rows) - head) }, (_, n) => {
          const i = head + n
          return upsert(`k${i}`, { n: i, name: `row ${i}`, note: 'x'.repeat(i % 200), at: '2026-01-31T12:00:00.123Z' })
        })
      : change(Math.min(500, Number(until) - head))
  // A process that was killed left its cycle unfinished.
  await driver.begin({ fresh: true })
  await driver.complete(landings)
}
await store.close()

function change(count) {
  const keys = new Set(Array.from({ length: count }, () => `k${Math.floor(random() * Number(rows) * 1.02)}`))
  return [...keys].map((key) =>
    random() < 0.2
      ? remove(key)
      : upsert(key, { n: Math.floor(random() * 1e9), [`f${Math.floor(random() * 5)}`]: 'x', list: [random()] }),
  )
}
