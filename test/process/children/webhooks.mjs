// Lands changes, or delivers them; with `dieAt` it reports that point and stops there.
import { input, openStore, run, report, Worker } from './child-runtime.mjs'

const { url, receiver, task, dieAt = null, rows = 5 } = input
const store = await openStore(url)

if (task === 'land') {
  const worker = new Worker({ name: 'office' })
  worker.sync('people', {
    database: worker.database('people'),
    mode: 'incremental',
    execute: async () => ({
      changes: Array.from({ length: rows }, (_, n) => ({ type: 'upsert', key: `p${n}`, record: { n } })),
      hasMore: false,
      nextState: 1,
    }),
  })
  await store.putWebhook(
    {
      id: 'w',
      url: receiver,
      databases: null,
      actions: null,
      allow: ['http', 'private', 'port'],
      secrets: '[["whsec_AAAA",null]]',
      createdAt: 1,
    },
    { sequence: 0, floor: 0 },
  )
  await run(store, worker.plan('people'))
  // Committed, and nothing has been sent.
  process.kill(process.pid, 'SIGKILL')
}

const { Deliverer } = await import(`${input.dist}/webhooks/deliverer.js`)
const { createSender } = await import(`${input.dist}/webhooks/send.js`)
const { holderName, isHolderGone } = await import(`${input.dist}/platform/lease-holder.js`)
const { systemClock } = await import(`${input.dist}/platform/clock.js`)
const never = new Promise(() => {})
const note = (message, fields) => report('log', { message, ...fields })
const deliverer = new Deliverer({
  store:
    dieAt === 'note'
      ? {
          ...store,
          recordDeliveries: () => {
            report('noting')
            return never
          },
        }
      : store,
  send: createSender(),
  holder: holderName(),
  isDead: isHolderGone,
  pollMs: 20,
  ports: { clock: systemClock, random: { next: () => 0.5 }, log: { debug: note, info: note, warn: note, error: note } },
})
deliverer.start()
report('delivering')
