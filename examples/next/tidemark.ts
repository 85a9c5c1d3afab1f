import { Worker, type Change } from 'tidemark'
import { createTidemark, type Tidemark } from 'tidemark/embed'

const worker = new Worker({ name: 'shop' })
export const customers = worker.database('customers')

worker.sync('customers', {
  database: customers,
  mode: 'replace',
  schedule: '15m',
  // Replace it with a source, such as `stripe({ apiKey: 'STRIPE_KEY' })`.
  execute: async () => ({
    changes: ['Ada', 'Grace'].map((name): Change => ({ type: 'upsert', key: name.toLowerCase(), record: { name } })),
    hasMore: false,
  }),
})

// The development server loads modules again after every change: there is one instance per process.
const shared = globalThis as { tidemark?: Tidemark }

export const tidemark = (shared.tidemark ??= createTidemark({
  store: process.env['DATABASE_URL'] ?? 'sqlite:data/copy.db',
  workers: [worker],
  prefix: '/sync',
}))
